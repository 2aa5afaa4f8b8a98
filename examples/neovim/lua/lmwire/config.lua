--- The settings, with their defaults.
local M = {}

M.defaults = {
  -- The worker's program and its arguments, such as { "ssh", "-T", "gpu-box", "lmwire", "worker" }.
  -- By default the worker is looked for.
  command = nil,
  -- Whether uvx may run the package lmwire of the package index if no worker is found. Whoever owns that name there
  -- runs code with your rights. lmwire is not published yet.
  uvx = false,
  -- A folder, a hub id or an alias.
  model = "builtin:tiny",
  -- Fields of `chat`, such as { temperature = 0.7, max_tokens = 1000 }.
  chat = {},
  -- Fields of `generate`.
  complete = { max_tokens = 128 },
  -- Bytes of the buffer before the cursor, and after it, that a completion considers.
  context_bytes = 8192,
}

M.values = vim.deepcopy(M.defaults)

local TYPES = {
  command = "table",
  uvx = "boolean",
  model = "string",
  chat = "table",
  complete = "table",
  context_bytes = "number",
}

--- Take the user's settings. Raise an error that names a wrong one.
function M.set(values)
  for name, value in pairs(values) do
    if not TYPES[name] then
      local names = vim.tbl_keys(TYPES)
      table.sort(names)
      error("lmwire: unknown setting `" .. name .. "`; the settings are " .. table.concat(names, ", "), 0)
    elseif type(value) ~= TYPES[name] then
      error("lmwire: `" .. name .. "` must be a " .. TYPES[name] .. ", not a " .. type(value), 0)
    end
  end
  M.values = vim.tbl_extend("force", vim.deepcopy(M.defaults), values)
end

return M
