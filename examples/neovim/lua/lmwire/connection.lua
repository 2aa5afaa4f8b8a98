--- A session with a worker: requests out, events in, and the rules of PROTOCOL.md in between.
---
--- Nothing here uses the editor. Handlers run in libuv's callbacks, so that most of vim.api needs vim.schedule.
local LineSplitter = require("lmwire.lines")
local Process = require("lmwire.process")
local event_check = require("lmwire.event_check")
local features = require("lmwire.features")
local json = require("lmwire.json")
local version = require("lmwire.version")

-- Longest line that a worker takes, in bytes.
local LINE_IN_BYTES = 32 * 1024 * 1024
-- Longest line from a worker, and longest banner before its reply to `hello`, in bytes.
local LINE_BYTES = 1024 * 1024
local BANNER_BYTES = 64 * 1024
-- Longest wait of each step of a shutdown. An editor that is quit must not linger.
local STEP_MS = 1500
-- Longest wait for the process after the end of stdout. A process that ends can take a while after it has closed its
-- pipes, such as to free a GPU.
local AFTER_OUTPUT_MS = 5000

local Connection = {}
Connection.__index = Connection

local function error_event(code, sentence)
  return { event = "error", code = code, error = sentence, retryable = false }
end

local function describe(self, what)
  local process = self.process
  local sentence = what .. ": " .. (self.violation or process.exit or "its output has ended")
  local last = process:last_stderr_line()
  return last and (sentence .. "; its last line on stderr: " .. last) or sentence
end

--- Fail all requests in flight. Later ones fail at once.
local function lose(self)
  if self.lost then
    return
  end
  self.lost = error_event("worker_lost", describe(self, "the worker is gone"))
  local requests = self.requests
  self.requests = {}
  for _, request in pairs(requests) do
    request.handlers.failed(self.lost)
  end
  if self.on_lost then
    self.on_lost(self.lost)
  end
end

local function violate(self, violation)
  self.violation = "it broke the protocol: " .. violation
  self.process:signal("sigkill")
  lose(self)
end

--- Skip a line of a login banner. After the reply to `hello`, such a line means that something broke the stream.
local function skip(self, line)
  self.banner_bytes = self.banner_bytes + #line + 1
  if self.hello then
    violate(self, "it wrote a line that is not a JSON object: " .. line:sub(1, 100))
  elseif self.banner_bytes > BANNER_BYTES then
    violate(self, "it wrote over 64 KiB before its reply to hello")
  end
end

local function finish(self, event, request)
  self.requests[event.id] = nil
  if event.event == "error" then
    request.handlers.failed(event)
  elseif request.command == "hello" and event.protocol ~= 1 then
    self.requests[event.id] = request
    violate(self, "it speaks protocol " .. event.protocol .. ", which was not offered")
  else
    self.hello = request.command == "hello" and event or self.hello
    request.handlers.done(event)
  end
end

local function deliver(self, event)
  if event.event == "error" and event.id == nil then
    return -- about a line that is not a request
  end
  local request = self.requests[event.id or ""]
  local is_well_formed = not request or event_check.is_well_formed(event, request.command)
  if type(event.id) ~= "string" or not is_well_formed then
    if event.event ~= "progress" then
      violate(self, "it wrote a malformed event: " .. event.event)
    end
  elseif request and (event.event == "done" or event.event == "error") then
    finish(self, event, request)
  elseif request and request.handlers.event then
    request.handlers.event(event)
  end
end

local function read_line(self, line)
  if line:find("^[ \t\r]*$") then
    return
  end
  local event = json.decode_object(line)
  if not event then
    skip(self, line)
  elseif type(event.event) == "string" and event_check.is_known(event.event) then
    deliver(self, event)
  end
end

local function read(self, bytes)
  if self.violation then
    return
  end
  local lines, is_too_long = self.splitter:push(bytes)
  for _, line in ipairs(lines) do
    read_line(self, line)
    if self.violation then
      return
    end
  end
  if is_too_long then
    violate(self, "it wrote a line of over 1 MiB")
  end
end

--- Fail what is in flight once the exit code is known, and make sure that the process and its group end.
local function output_ended(self)
  self.stop_waiting = Process.after(self.process.exit and 0 or AFTER_OUTPUT_MS, function()
    lose(self)
    if not self.process.exit then
      self.process:signal("sigkill")
    end
  end)
end

local function exited(self)
  if self.stop_waiting then
    self.stop_waiting()
    lose(self)
  end
  self.process:signal("sigkill") -- processes that the worker has started and left
  for _, callback in ipairs(self.on_exit) do
    callback()
  end
  self.on_exit = {}
end

--- Start a worker and greet it.
---
--- @param command table The program and its arguments.
--- @param options table timeout_ms: the longest wait for the reply to `hello`. host_pid: this process, if the worker is
---   its descendant. on_lost: called with an error event when the worker is gone.
--- @param callback function Called with an error event, or with nil and the connection.
--- @return table|nil The connection, which can be closed before the callback.
function Connection.start(command, options, callback)
  local self = setmetatable({
    requests = {},
    next_id = 1,
    banner_bytes = 0,
    splitter = LineSplitter.new(LINE_BYTES),
    on_exit = {},
  }, Connection)
  local failure
  self.process, failure = Process.spawn(command, {
    output = function(bytes)
      read(self, bytes)
    end,
    output_ended = function()
      output_ended(self)
    end,
    exited = function()
      exited(self)
    end,
  })
  if not self.process then
    callback(error_event("start_failed", failure))
    return nil
  end
  self:_greet(options, callback)
  return self
end

function Connection:_greet(options, callback)
  local stop_timer
  local function fail(event)
    stop_timer()
    self.violation = self.violation or "it was ended"
    self.process:signal("sigkill")
    lose(self)
    callback(error_event("start_failed", "the worker cannot be used: " .. event.error))
  end
  stop_timer = Process.after(options.timeout_ms, function()
    self.requests = {}
    fail(error_event("timeout", "it has not answered within " .. options.timeout_ms / 1000 .. " s"))
  end)
  local fields = { protocol = { 1, 1 }, client = "lmwire.nvim/" .. version, host_pid = options.host_pid }
  self:request("hello", fields, {
    failed = fail,
    done = function()
      stop_timer()
      self.on_lost = options.on_lost
      callback(nil, self)
    end,
  })
end

local function refusal(self, command, fields)
  if command == "quit" then
    return nil -- a worker that has closed its output can still read
  elseif self.lost or (self.is_closing and command ~= "cancel") then
    return self.lost or error_event("worker_lost", "the worker has been ended")
  end
  local missing = features.missing(command, fields, self.hello and self.hello.features or {})
  if #missing > 0 then
    local list = table.concat(missing, ", ")
    return error_event("unsupported", "the worker is too old for this " .. command .. ": it lacks " .. list)
  end
end

--- Send a command. Return its id, or nil if it was not sent.
---
--- @param command string Its name.
--- @param fields table Its fields, without `id` and `cmd`.
--- @param handlers table event(event), optional; then done(event) or failed(event), once.
function Connection:request(command, fields, handlers)
  local refused = refusal(self, command, fields)
  if refused then
    return handlers.failed(refused)
  end
  local id = tostring(self.next_id)
  local is_sendable, line = pcall(json.encode_command, id, command, fields)
  if not is_sendable then
    return handlers.failed(error_event("invalid_request", tostring(line)))
  end
  local size = #line - 1
  if size > LINE_IN_BYTES then
    local sentence = "the request's line has " .. size .. " bytes, more than " .. LINE_IN_BYTES
    return handlers.failed(error_event("line_too_long", sentence .. "; shorten the text"))
  end
  self.next_id = self.next_id + 1
  self.requests[id] = { command = command, handlers = handlers }
  self.process:write(line)
  return id
end

local function ignore() end

--- Cancel a request. It still gets its own end.
function Connection:cancel(id)
  if id and self.requests[id] then
    self:request("cancel", { target = id }, { done = ignore, failed = ignore })
  end
end

--- Cancel all requests. Each still gets its own end.
function Connection:cancel_all()
  self:request("cancel", { all = true }, { done = ignore, failed = ignore })
end

--- End the worker in steps, and call a function when its process is gone.
function Connection:close(callback)
  local was_closing = self.is_closing
  self.is_closing = true
  if self.process.exit then
    return callback()
  end
  table.insert(self.on_exit, callback)
  if was_closing then
    return
  end
  self:request("quit", vim.empty_dict(), { done = ignore, failed = ignore })
  local steps = {
    function()
      self.process:close_stdin()
    end,
    function()
      self.process:signal("sigterm")
    end,
    function()
      self.process:signal("sigkill")
    end,
  }
  local function step(number)
    local stop = Process.after(STEP_MS, function()
      steps[number]()
      if steps[number + 1] then
        step(number + 1)
      end
    end)
    table.insert(self.on_exit, stop)
  end
  step(1)
end

--- Kill the worker and what it has started. Its requests fail.
function Connection:kill()
  self.process:signal("sigkill")
end

return Connection
