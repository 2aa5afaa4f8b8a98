--- The worker's life: loads, deaths, restarts and the end of the editor.
local support = require("support")
local worker = require("lmwire.worker")
local equal, wait_for = support.equal, support.wait_for
local uv = vim.uv or vim.loop

local function pid()
  return tonumber(support.children()[1]:match("%d+"))
end

local function wait_until_ready()
  wait_for("a loaded model", function()
    return worker.phase == "ready" and worker.model
  end)
end

return {
  {
    "the status shows how far a load has come",
    function()
      local steps = { { stage = "read", current = 40, total = 100, unit = "bytes", delay_ms = 3600000 } }
      support.use_mock(support.scenario({ { match = { cmd = "load" }, reply = { progress = steps } } }))
      equal("", require("lmwire").statusline())
      worker.load("anything")
      wait_for("progress", function()
        return require("lmwire").statusline() == "lmwire: loading read 40%"
      end)
      vim.cmd("LmwireStop")
      support.wait_for_notice("(cancelled)")
    end,
  },
  {
    "the picker offers the models of `lmwire models`, and loads the chosen one",
    function()
      require("lmwire").setup({ command = { support.PROGRAM, "worker" } })
      local offered
      local select = vim.ui.select
      vim.ui.select = function(items, options, choose)
        offered = vim.tbl_map(options.format_item, items)
        choose(items[1])
      end
      vim.cmd("LmwireModel")
      support.wait_for_notice("loaded ")
      vim.ui.select = select
      assert(offered[1]:find("builtin:tiny (qwen3", 1, true), vim.inspect(offered))
      equal("qwen3", worker.model.model_type)
    end,
  },
  {
    "a load that fails is reported, and the model before it stays in use",
    function()
      support.use_mock()
      worker.load("mock")
      wait_until_ready()
      vim.cmd("LmwireModel nobody/nothing")
      support.wait_for_notice("model_not_found")
      equal("lmwire: mock", require("lmwire").statusline())
    end,
  },
  {
    "a killed worker is reported with the way to restart, and the next request starts another",
    function()
      support.use_mock(support.scenario({
        { match = { last_message = "Hello" }, reply = { tokens = { "so far" }, ["then"] = "wait" } },
      }))
      vim.cmd("LmwireChat Hello")
      wait_for("the first text", function()
        return table.concat(support.lines(), "\n"):find("so far", 1, true)
      end)
      local first = pid()
      uv.kill(first, "sigkill")
      local notice = support.wait_for_notice(":LmwireRestart")
      assert(notice:find("signal 9", 1, true), notice)
      equal("lmwire: lost", require("lmwire").statusline())
      support.wait_for_turn()
      vim.cmd("LmwireChat Again")
      support.wait_for_turn()
      assert(pid() ~= first)
    end,
  },
  {
    ":LmwireRestart replaces a worker that hangs",
    function()
      support.use_mock("--fault", "stall", "--fault", "ignore-sigterm")
      vim.cmd("LmwireChat Hello")
      wait_for("the first text", function()
        return table.concat(support.lines(), "\n"):find("1 2 3", 1, true)
      end)
      local first = pid()
      vim.cmd("LmwireRestart")
      wait_until_ready()
      assert(pid() ~= first)
      equal(1, #support.children())
    end,
  },
  {
    "a worker that cannot be started is reported with the reason",
    function()
      require("lmwire").setup({ command = { "/nowhere/lmwire", "worker" } })
      worker.load("mock")
      support.wait_for_notice("/nowhere/lmwire cannot be started: ENOENT")
    end,
  },
  {
    "a worker that breaks the protocol is ended",
    function()
      support.use_mock("--fault", "garbage-between-events")
      vim.cmd("LmwireChat one two three")
      support.wait_for_notice("it broke the protocol")
      wait_for("the end of the process", function()
        return #support.children() == 0
      end)
    end,
  },
  {
    "a worker that speaks another version is refused",
    function()
      support.use_mock("--fault", "newer-version")
      worker.load("mock")
      support.wait_for_notice("no common protocol version")
    end,
  },
  {
    "a worker that does not answer is replaced by :LmwireRestart",
    function()
      support.use_mock("--fault", "no-hello")
      worker.load("mock")
      wait_for("the process", function()
        return #support.children() == 1
      end)
      support.use_mock()
      vim.cmd("LmwireRestart")
      wait_until_ready()
      equal(1, #support.children())
      equal({ "lmwire: the worker has been ended (worker_lost)" }, support.notices)
    end,
  },
  {
    "the worker ends with the editor",
    function()
      support.use_mock()
      worker.load("mock")
      wait_until_ready()
      vim.cmd("doautocmd VimLeavePre")
      equal({}, support.children())
    end,
  },
}
