--- Parts that need no worker.
local LineSplitter = require("lmwire.lines")
local chat = require("lmwire.chat")
local complete = require("lmwire.complete")
local config = require("lmwire.config")
local event_check = require("lmwire.event_check")
local features = require("lmwire.features")
local find_worker = require("lmwire.find_worker")
local json = require("lmwire.json")
local equal = require("support").equal

local function read(file)
  local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
  return vim.fn.readfile(vim.fn.fnamemodify(here, ":h:h:h") .. "/protocol/" .. file)
end

local function vectors(name)
  return vim.tbl_map(vim.json.decode, read("vectors/" .. name .. ".jsonl"))
end

return {
  {
    "lines are the same however their bytes are cut",
    function()
      local bytes = 'a\n\n"é漢😀"\nhalf'
      for size = 1, #bytes do
        local splitter, lines = LineSplitter.new(100), {}
        for start = 1, #bytes, size do
          vim.list_extend(lines, (splitter:push(bytes:sub(start, start + size - 1))))
        end
        equal({ "a", "", '"é漢😀"' }, lines)
      end
    end,
  },
  {
    "a line over the limit is reported before its end, and the lines before it are kept",
    function()
      equal({ { "a" }, true }, { LineSplitter.new(4):push("a\nbbbbb") })
      equal({ { "a" }, true }, { LineSplitter.new(4):push("a\nbbbbb\nc\n") })
      equal({ { "a", "bbbb" }, false }, { LineSplitter.new(4):push("a\nbbbb\n") })
    end,
  },
  {
    "only UTF-8 is accepted",
    function()
      for _, text in ipairs({ "", "plain", "é漢😀", "\239\191\191", "\244\143\191\191" }) do
        assert(json.is_utf8(text), text)
      end
      for _, bytes in ipairs({ "\255", "\192\128", "\237\160\128", "\244\144\128\128", "\195", "\195é\169" }) do
        assert(not json.is_utf8(bytes), vim.inspect(bytes))
      end
    end,
  },
  {
    "null is absent in an object, and text around it is unchanged",
    function()
      equal({ a = 1, s = "null" }, json.decode_object('{"a":1,"b":null,"s":"null"}'))
      equal(nil, json.decode_object("[1]"))
      equal(nil, json.decode_object('{"a":'))
      equal(nil, json.decode_object("5"))
    end,
  },
  {
    "numbers that JSON does not have are refused, and text that looks like them is not",
    function()
      for _, number in ipairs({ "NaN", "nan", "Infinity", "-Infinity", "inf", "0x1F" }) do
        equal(nil, json.decode_object('{"a":' .. number .. "}"))
        equal({ a = '"' .. number }, json.decode_object('{"a":"\\"' .. number .. '"}'))
      end
    end,
  },
  {
    "numbers keep all their digits, and the id comes first",
    function()
      local line = json.encode_command("1", "chat", { seed = 2 ^ 53 - 1 })
      equal('{"id":"1","cmd":"chat","seed":9007199254740991}\n', line)
      equal("[0.10000000000000001,1,[],{}]", json.encode({ 0.1, 1, {}, vim.empty_dict() }))
      assert(not pcall(json.encode, 0 / 0))
    end,
  },
  {
    "a field that is newer than 1.0 needs a feature",
    function()
      equal({}, features.missing("generate", { prompt = "x", seed = 1 }, {}))
      equal({ "generate.suffix" }, features.missing("generate", { prompt = "x", suffix = "" }, { "tokenize" }))
      equal({}, features.missing("generate", { prompt = "x", suffix = "" }, { "generate.suffix" }))
      equal({ "embed" }, features.missing("embed", { input = {} }, {}))
    end,
  },
  {
    "the fields of 1.0 are those of the schema",
    function()
      local meta = vim.json.decode(table.concat(read("schema/v1/meta.json"), "\n"))
      local commands = {}
      for command, description in pairs(meta.commands) do
        if description.since == "1.0" then
          commands[command] = {}
          for field, detail in pairs(description.fields or {}) do
            if detail.since == "1.0" and not field:find("%[%]") then
              commands[command][field] = true
            end
          end
        end
      end
      equal(commands, features.FIRST)
    end,
  },
  {
    "an event is well-formed as the vectors say",
    function()
      local function is_accepted(vector)
        local event = type(vector.line) == "string" and json.decode_object(vector.line)
        local has_id = event and (type(event.id) == "string" or (event.event == "error" and event.id == nil))
        return has_id and event_check.is_well_formed(event, vector.command)
      end
      for _, vector in ipairs(vectors("events.valid")) do
        assert(is_accepted(vector) or type(vector.line) == "table", vector.name)
      end
      for _, vector in ipairs(vectors("events.invalid")) do
        if vector.host == "end" then
          assert(not is_accepted(vector), vector.name)
        elseif vector.host == "accept" then
          assert(is_accepted(vector), vector.name)
        end
      end
    end,
  },
  {
    "the version is that of lmwire",
    function()
      local source = table.concat(read("lmwire_protocol/__init__.py"), "\n")
      equal(source:match('__version__ = "([^"]+)"'), require("lmwire.version"))
    end,
  },
  {
    "a chat's lines are its messages, and empty turns are left out",
    function()
      local lines = { "# System", "Be brief.", "# You", "", "Hi", "there", "# Assistant", "## Hello", "# You", "" }
      equal({
        { role = "system", content = "Be brief." },
        { role = "user", content = "Hi\nthere" },
        { role = "assistant", content = "## Hello" },
      }, chat.messages(lines))
    end,
  },
  {
    "long text is cut at a line's border",
    function()
      equal("ab\ncd", complete.clip("ab\ncd", 5, true))
      equal("cd", complete.clip("ab\ncd", 4, true))
      equal("ab\n", complete.clip("ab\ncd", 4, false))
    end,
  },
  {
    "a wrong setting is named",
    function()
      local _, unknown = pcall(config.set, { modle = "x" })
      assert(unknown:find("unknown setting `modle`", 1, true), unknown)
      local _, wrong = pcall(config.set, { command = "lmwire worker" })
      assert(wrong:find("`command` must be a table", 1, true), wrong)
    end,
  },
  {
    "the worker is the configured one, then that of the variable, then that of PATH",
    function()
      local path = vim.env.PATH
      vim.env.PATH = "/nowhere"
      local start = "lmwire: no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or "
      equal({ false, start .. "allow a download with the option uvx" }, { pcall(find_worker.find) })
      equal({ false, start .. "install uv for the option uvx" }, { pcall(find_worker.find, nil, true) })
      vim.env.LMWIRE_WORKER = '["ssh", "box", "lmwire", "worker"]'
      equal({ { "ssh", "box", "lmwire", "worker" }, false, 30000 }, { find_worker.find() })
      vim.env.LMWIRE_WORKER = "/opt/lmwire"
      equal({ { "/opt/lmwire", "worker" }, true, 30000 }, { find_worker.find() })
      equal({ { "mine" }, false, 30000 }, { find_worker.find({ "mine" }) })
      vim.env.LMWIRE_WORKER, vim.env.PATH = nil, path
    end,
  },
  {
    "uvx runs only if the settings allow it, and no program of the working directory does",
    function()
      local path, folder, here = vim.env.PATH, vim.fn.tempname(), vim.fn.getcwd()
      vim.fn.mkdir(folder)
      for _, name in ipairs({ "uvx", "lmwire" }) do
        vim.fn.writefile({ "#!/bin/sh" }, folder .. "/" .. name)
        vim.fn.setfperm(folder .. "/" .. name, "rwxr-xr-x")
      end
      vim.fn.chdir(folder)
      vim.env.PATH = ".::/nowhere"
      assert(not pcall(find_worker.find, nil, true))
      vim.env.PATH = ".:" .. folder
      equal({ folder .. "/lmwire", "worker" }, (find_worker.find()))
      vim.fn.delete(folder .. "/lmwire")
      assert(not pcall(find_worker.find, nil, config.defaults.uvx))
      equal(folder .. "/uvx", find_worker.find(nil, true)[1])
      vim.fn.chdir(here)
      vim.env.PATH = path
    end,
  },
  {
    "the models are listed where the worker runs",
    function()
      local remote = find_worker.models_command({ "ssh", "box", "lmwire", "worker" })
      equal({ "ssh", "box", "lmwire", "models", "--json" }, remote)
      equal({ "lmwire", "models", "--json" }, find_worker.models_command({ "lmwire", "worker", "--media-urls" }))
      equal(nil, find_worker.models_command({ "./start" }))
    end,
  },
}
