--- The forms of the events that the plugin uses. It ignores other kinds of events.
local M = {}

local LIST_OF_NUMBERS = { "number" }
local MODEL = {
  path = "string",
  model_type = "string",
  vocab_size = "number",
  layers = "number",
  hidden_size = "number",
  context_len = "number",
  weights_bytes = "number",
  capabilities = { "string" },
}
local RESULT = {
  finish_reason = "string",
  seed = "number",
  usage = { prompt_tokens = "number", cached_tokens = "number", completion_tokens = "number" },
  timings = {},
}
local LIMITS = {
  line_in_bytes = "number",
  line_out_bytes = "number",
  requests = "number",
  queued_bytes = "number",
}

-- The members that are always present, with their types.
M.EVENTS = {
  progress = { stage = "string", current = "number", unit = "string" },
  token = { token = "string", token_ids = LIST_OF_NUMBERS },
  tool_call = { index = "number" },
  error = { error = "string", code = "string", retryable = "boolean" },
}

-- The same for the `done` of each command.
M.DONES = {
  hello = {
    protocol = "number",
    worker = "string",
    pid = "number",
    engines = { "string" },
    features = { "string" },
    limits = LIMITS,
  },
  load = MODEL,
  info = MODEL,
  generate = RESULT,
  chat = RESULT,
  cancel = { matched = "number" },
  ping = { state = "string", active = "number", queued = "number" },
}

local function fits(value, shape)
  if type(shape) == "string" then
    return type(value) == shape
  elseif type(value) ~= "table" then
    return false
  end
  if shape[1] then
    for _, item in ipairs(value) do
      if type(item) ~= shape[1] then
        return false
      end
    end
    return true
  end
  for name, member in pairs(shape) do
    if not fits(value[name], member) then
      return false
    end
  end
  return true
end

--- Return whether an event is of a kind that the plugin knows.
function M.is_known(event)
  return event == "done" or M.EVENTS[event] ~= nil
end

--- Return whether an event has its members.
---
--- @param event table The event, without members that are null.
--- @param command string The command of its request. It decides the form of `done`.
function M.is_well_formed(event, command)
  local shape = event.event == "done" and M.DONES[command] or M.EVENTS[event.event]
  return shape == nil or fits(event, shape)
end

return M
