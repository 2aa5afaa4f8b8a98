--- A child process with three pipes, in a process group of its own.
---
--- libuv's spawn is in every Neovim since 0.5. vim.system is newer than 0.9, and vim.fn.jobstart makes no group.
local uv = vim.uv or vim.loop

-- Lines of stderr that are kept for error messages, and bytes of each.
local STDERR_LINES = 64
local STDERR_LINE_BYTES = 1000
-- Longest wait for the end of stdout after the process has exited: a grandchild can hold the pipe.
local AFTER_EXIT_MS = 1000

local Process = {}
Process.__index = Process

--- Call a function once, after some milliseconds. Return a function that prevents it.
function Process.after(milliseconds, callback)
  local timer = uv.new_timer()
  local function stop()
    if not timer:is_closing() then
      timer:close()
    end
  end
  timer:start(milliseconds, 0, function()
    stop()
    callback()
  end)
  return stop
end

local function close(handle)
  if not handle:is_closing() then
    handle:close()
  end
end

local function keep_stderr(self, bytes)
  local lines = vim.split(self.partial .. bytes, "\n", { plain = true })
  self.partial = lines[#lines]:sub(1, STDERR_LINE_BYTES)
  for index = 1, #lines - 1 do
    table.insert(self.stderr_lines, lines[index]:sub(1, STDERR_LINE_BYTES))
  end
  while #self.stderr_lines > STDERR_LINES do
    table.remove(self.stderr_lines, 1)
  end
end

local function end_output(self)
  if not self.has_output_ended then
    self.has_output_ended = true
    close(self.pipes.stdout)
    self.handlers.output_ended()
  end
end

local function exited(self, code, signal)
  self.exit = signal ~= 0 and ("signal " .. signal) or ("exit code " .. code)
  close(self.handle)
  close(self.pipes.stdin)
  Process.after(AFTER_EXIT_MS, function()
    close(self.pipes.stderr)
    end_output(self)
  end)
  self.handlers.exited()
end

local function read(self)
  self.pipes.stdout:read_start(function(failure, bytes)
    if failure or not bytes then
      end_output(self)
    elseif not self.has_output_ended then
      self.handlers.output(bytes)
    end
  end)
  self.pipes.stderr:read_start(function(_, bytes)
    if bytes then
      keep_stderr(self, bytes)
    else
      close(self.pipes.stderr)
    end
  end)
end

--- Start a program. Return nil and a sentence if it cannot be started.
---
--- @param command table The program and its arguments.
--- @param handlers table output(bytes), output_ended() and exited(). They run in libuv's callbacks.
function Process.spawn(command, handlers)
  local self = setmetatable({ handlers = handlers, stderr_lines = {}, partial = "" }, Process)
  self.pipes = { stdin = uv.new_pipe(false), stdout = uv.new_pipe(false), stderr = uv.new_pipe(false) }
  local options = {
    args = vim.list_slice(command, 2),
    stdio = { self.pipes.stdin, self.pipes.stdout, self.pipes.stderr },
    detached = true,
    hide = true,
  }
  local is_started, handle, pid = pcall(uv.spawn, command[1], options, function(code, signal)
    exited(self, code, signal)
  end)
  if not is_started or not handle then
    for _, pipe in pairs(self.pipes) do
      close(pipe)
    end
    return nil, command[1] .. " cannot be started: " .. tostring(is_started and pid or handle)
  end
  self.handle, self.pid = handle, pid
  read(self)
  return self
end

--- Write bytes without waiting. A failure is ignored: the worker is ending, and the end of stdout decides.
function Process:write(bytes)
  if not self.pipes.stdin:is_closing() then
    self.pipes.stdin:write(bytes, function() end)
  end
end

function Process:close_stdin()
  close(self.pipes.stdin)
end

--- Send a signal to the process group.
function Process:signal(name)
  pcall(uv.kill, -self.pid, name)
end

--- Return the last line of stderr that is not blank, or nil.
function Process:last_stderr_line()
  local lines = vim.list_extend(vim.list_extend({}, self.stderr_lines), { self.partial })
  for index = #lines, 1, -1 do
    if lines[index]:find("%S") then
      return lines[index]
    end
  end
end

return Process
