--- The editor's one worker: started by the first request, with a model, and ended with the editor.
local Connection = require("lmwire.connection")
local config = require("lmwire.config")
local find_worker = require("lmwire.find_worker")

local M = {
  --- "off", "starting", "loading", "ready" or "lost".
  phase = "off",
  --- The path of the model to load, once one was picked.
  path = nil,
  --- The `done` of the last load.
  model = nil,
  --- The last `progress` of a load.
  progress = nil,
  --- Number of answers that are being generated.
  answering = 0,
}

local connection
-- A connection whose worker has not answered `hello`.
local starting
local waiting = {}
-- Whether `M.path` names a model that was picked and is not loaded.
local must_load = false
local loaded_path

function M.notify(sentence, level)
  vim.schedule(function()
    vim.notify("lmwire: " .. sentence, level)
  end)
end

--- Report an error event, with its code.
function M.report(event)
  M.notify(event.error .. " (" .. event.code .. ")", vim.log.levels.ERROR)
end

local function enter(phase)
  M.phase = phase
  vim.schedule(function()
    vim.cmd("redrawstatus")
  end)
end

local function tell_waiting(failure)
  local callbacks = waiting
  waiting = {}
  for _, callback in ipairs(callbacks) do
    callback(failure, connection, M.model)
  end
end

local function load()
  local this, path = connection, M.path
  M.progress, must_load = nil, false
  enter("loading")
  connection:request("load", { path = path }, {
    event = function(event)
      M.progress = event
      enter("loading")
    end,
    done = function(event)
      if this.is_closing then
        return
      end
      M.model, loaded_path = event, path
      if must_load then
        return load() -- another model was picked meanwhile
      end
      enter("ready")
      tell_waiting()
    end,
    failed = function(event)
      if this.is_closing then
        return -- `M.close` tells those that wait
      end
      M.model = event.loaded and M.model or nil
      M.path = loaded_path
      enter(event.code == "worker_lost" and "lost" or "ready")
      tell_waiting(event)
    end,
  })
end

local function lost(event)
  connection, M.model = nil, nil
  enter("lost")
  M.notify(event.error .. ". The next request starts a new worker, and so does :LmwireRestart.", vim.log.levels.ERROR)
end

local function start()
  enter("starting")
  local is_found, command, is_local, timeout_ms = pcall(find_worker.find, config.values.command, config.values.uvx)
  if not is_found then
    enter("off")
    return tell_waiting({ code = "start_failed", error = command })
  end
  local options = { timeout_ms = timeout_ms, host_pid = is_local and vim.fn.getpid() or nil }
  local this
  options.on_lost = function(event)
    if connection == this and not this.is_closing then
      lost(event)
    end
  end
  this = Connection.start(command, options, function(failure, started)
    if starting ~= this or (this and this.is_closing) then
      return
    end
    connection, starting = started, nil
    if failure then
      enter("off")
      return tell_waiting(failure)
    end
    load()
  end)
  starting = this
end

--- Call a function with (error event), or with (nil, connection, model) when a model is loaded.
---
--- It can run in libuv's callbacks.
function M.use(callback)
  if M.phase == "ready" and M.model and not must_load then
    return callback(nil, connection, M.model)
  end
  table.insert(waiting, callback)
  if M.phase == "starting" or M.phase == "loading" then
    return
  end
  M.path = M.path or config.values.model
  if connection then
    load()
  else
    start()
  end
end

--- Load a model in place of the present one. Running answers end first.
function M.load(path)
  M.path, must_load = path, true
  M.use(function(failure, _, model)
    if failure then
      M.report(failure)
    else
      M.notify("loaded " .. model.path, vim.log.levels.INFO)
    end
  end)
end

--- Cancel all requests. The worker goes on.
function M.stop()
  if connection then
    connection:cancel_all()
  end
end

--- End the worker, and wait until its process is gone.
function M.close()
  local open = connection or starting
  local closed = open == nil
  if open then
    open:close(function()
      closed = true
    end)
    vim.wait(10000, function()
      return closed
    end, 10)
  end
  connection, starting, M.model = nil, nil, nil
  enter("off")
  tell_waiting({ code = "worker_lost", error = "the worker has been ended" })
end

--- Start a new worker, also in place of one that hangs.
function M.restart()
  M.close()
  M.use(function(failure)
    if failure then
      M.report(failure)
    end
  end)
end

--- Send a request that generates text, and count it for the status.
---
--- @param command string `chat` or `generate`.
--- @param to_fields function Returns the fields for a model and the worker's features, or nil and a sentence.
--- @param handlers table text(text), then done(event) or failed(event). They run in libuv's callbacks.
--- @return function A function that cancels the request, also before it is sent.
function M.generate(command, to_fields, handlers)
  local id, sent_to, is_cancelled
  local function ended(handler)
    return function(event)
      M.answering = M.answering - 1
      enter(M.phase)
      handler(event)
    end
  end
  M.answering = M.answering + 1
  local failed = ended(handlers.failed)
  M.use(function(failure, started, model)
    if failure or is_cancelled then
      return failed(failure or { code = "cancelled", error = "the request was stopped" })
    end
    local fields, refusal = to_fields(model, started.hello.features)
    if not fields then
      return failed({ code = "unsupported", error = refusal })
    end
    sent_to = started
    id = started:request(command, fields, {
      event = function(event)
        if event.event == "token" and (event.channel or "content") == "content" then
          handlers.text(event.token)
        end
      end,
      done = ended(handlers.done),
      failed = failed,
    })
  end)
  return function()
    is_cancelled = true
    if sent_to then
      sent_to:cancel(id)
    end
  end
end

return M
