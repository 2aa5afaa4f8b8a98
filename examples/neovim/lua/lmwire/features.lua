--- What a worker of revision 1.0 serves. Everything else needs a feature that the worker lists; see V-3 of PROTOCOL.md.
local M = {}

local GENERATION = {
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "penalty_window",
  "seed",
  "stop",
}

local function set(...)
  local names = {}
  for _, name in ipairs({ ... }) do
    names[name] = true
  end
  return names
end

local function generation_and(field)
  local fields = set(unpack(GENERATION))
  fields[field] = true
  return fields
end

-- The commands of 1.0, and their fields.
M.FIRST = {
  hello = set("protocol", "client", "host_pid"),
  load = set("path", "trust_remote_code"),
  unload = set(),
  info = set(),
  generate = generation_and("prompt"),
  chat = generation_and("messages"),
  cancel = set("target", "all"),
  ping = set(),
  stats = set(),
  quit = set("drain"),
}
local FIRST_ROLES = set("system", "user", "assistant")

local function needed(command, fields)
  if not M.FIRST[command] then
    return { command }
  end
  local features = {}
  for field in pairs(fields) do
    if not M.FIRST[command][field] then
      features[#features + 1] = command .. "." .. field
    end
  end
  for _, message in ipairs(fields.messages or {}) do
    if not FIRST_ROLES[message.role] then
      features[#features + 1] = "chat.messages.role." .. message.role
    end
  end
  return features
end

--- Return the features that a command needs and that a worker does not list.
---
--- @param command string The command's name.
--- @param fields table Its fields.
--- @param listed table The features of the worker's reply to `hello`.
function M.missing(command, fields, listed)
  return vim.tbl_filter(function(feature)
    return not vim.tbl_contains(listed, feature)
  end, needed(command, fields))
end

return M
