--- The driver of the plugin's connection for `lmwire conformance host`.
---
--- protocol/lmwire_conformance/HOSTS.md specifies it.
---
--- Run it with: nvim --headless -u NONE -i NONE -c "luafile examples/neovim/test/conformance_driver.lua"
local here = debug.getinfo(1, "S").source:sub(2)
vim.opt.runtimepath:prepend(vim.fn.fnamemodify(here, ":p:h:h"))

local Connection = require("lmwire.connection")
local Process = require("lmwire.process")
local LineSplitter = require("lmwire.lines")
local json = require("lmwire.json")
local uv = vim.uv or vim.loop

local COMMAND = vim.json.decode(vim.env.LMWIRE_WORKER_COMMAND)
local FINISH_REASONS = { stop = 1, length = 1, tool_calls = 1, cancelled = 1, timeout = 1, capacity = 1 }

local function report(saw, members)
  io.stdout:write(json.encode(vim.tbl_extend("error", { saw = saw }, members or {})), "\n")
  io.stdout:flush()
end

local connection
local requests = {}

local function known(finish_reason)
  return FINISH_REASONS[finish_reason] and finish_reason or "other"
end

local function known_members(logprob)
  local members = {}
  for _, name in ipairs({ "token_id", "token", "logprob", "bytes", "text" }) do
    members[name] = logprob[name]
  end
  return members
end

local function known_logprobs(logprobs)
  return logprobs and vim.tbl_map(function(logprob)
    local members = known_members(logprob)
    members.top = logprob.top and vim.tbl_map(known_members, logprob.top)
    return members
  end, logprobs)
end

--- Add the part of a call to the calls of a request.
local function add_call(calls, event)
  local choice = event.choice or 0
  local key = choice .. ":" .. event.index
  if not calls[key] then
    calls[key] = { choice = choice, call = { id = event.call_id, name = event.name, arguments = "" } }
  end
  local call = calls[key]
  call.call.arguments = call.call.arguments .. (event.arguments or "")
  -- vim.json.decode makes a table of a list, too.
  if event.complete and call.call.arguments:find("^%s*{") and pcall(vim.json.decode, call.call.arguments) then
    table.insert(calls, call)
  end
end

local function report_done(name, command, calls, event)
  if command ~= "generate" and command ~= "chat" then
    return report("done", { name = name })
  end
  for _, call in ipairs(calls) do
    report("tool_call", { name = name, choice = call.choice, call = call.call })
  end
  local reasons = event.choices and vim.tbl_map(function(choice)
    return known(choice.finish_reason)
  end, event.choices)
  local choices = reasons and #reasons > 1 and reasons or nil
  report("done", { name = name, finish_reason = known(event.finish_reason), choices = choices })
end

local function handlers(name, command, timeout)
  local calls, stop_timer = {}, nil
  local handle = { is_over = false }
  local function over()
    if stop_timer then
      stop_timer()
    end
    local was_over = handle.is_over
    handle.is_over = true
    return was_over
  end
  function handle.event(event)
    if handle.is_over then
      return
    elseif event.event == "token" then
      local logprobs = known_logprobs(event.logprobs)
      local members = { name = name, text = event.token, choice = event.choice, logprobs = logprobs }
      members.channel = event.channel
      report("text", members)
    elseif event.event == "segment" then
      report("text", { name = name, text = event.text })
    elseif event.event == "tool_call" then
      add_call(calls, event)
    end
  end
  function handle.done(event)
    if not over() then
      report_done(name, command, calls, event)
    end
  end
  function handle.failed(event)
    if not over() then
      report("failed", { name = name, code = event.code, retryable = event.retryable })
    end
  end
  if timeout then
    stop_timer = Process.after(math.floor(timeout * 1000), function()
      connection:cancel(requests[name])
      handle.failed({ code = "timeout" })
    end)
  end
  return handle
end

local instructions = {}

function instructions.start(instruction, continue)
  connection, requests = nil, {}
  local options = { timeout_ms = math.floor((instruction.timeout or 30) * 1000), host_pid = uv.os_getpid() }
  Connection.start(COMMAND, options, function(failure, started)
    connection = started
    report(failure and "start_failed" or "started")
    continue()
  end)
end

function instructions.request(instruction, continue)
  local name, fields = instruction.name, instruction.command
  local command = fields.cmd
  fields.cmd = nil
  local handle = handlers(name, command, instruction.timeout)
  if connection then
    requests[name] = connection:request(command, fields, handle)
  else
    handle.failed({ code = "worker_lost" })
  end
  continue()
end

function instructions.cancel(instruction, continue)
  connection:cancel(requests[instruction.name])
  continue()
end

function instructions.close(_, continue)
  local function closed()
    -- After the exit the rest of the pipe may still be unread, or held open; the reports come before `closed`.
    if connection and not connection.lost then
      return Process.after(10, closed)
    end
    report("closed")
    continue()
  end
  if connection then
    connection:close(closed)
  else
    closed()
  end
end

local queue, is_busy, is_over = {}, false, false

local function next_instruction()
  local line = not is_busy and table.remove(queue, 1)
  if line then
    is_busy = true
    local instruction = vim.json.decode(line)
    instructions[instruction["do"]](instruction, function()
      is_busy = false
      next_instruction()
    end)
  end
end

local stdin, splitter = uv.new_pipe(false), LineSplitter.new(64 * 1024 * 1024)
stdin:open(0)
stdin:read_start(function(_, bytes)
  is_over = not bytes
  vim.list_extend(queue, bytes and splitter:push(bytes) or {})
  next_instruction()
end)
-- One condition for the loop and for the wait: with two, the loop spins while an instruction is not done.
local function is_done()
  return is_over and #queue == 0 and not is_busy
end
while not is_done() do
  vim.wait(60000, is_done, 100)
end
vim.cmd("qall!")
