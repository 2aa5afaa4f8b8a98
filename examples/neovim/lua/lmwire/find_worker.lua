--- Finds the worker, in the order of docs/hosts.md. A plugin has no program that a worker could lie beside.
local version = require("lmwire.version")

local M = {}

local START_TIMEOUT_MS = 30 * 1000
-- uvx downloads the packages first.
local DOWNLOAD_TIMEOUT_MS = 600 * 1000

-- Return what pip and uvx install for this machine's models.
local function packages()
  return ("lmwire[%s]==%s"):format(vim.fn.has("mac") == 1 and "worker" or "cpu", version)
end

local function from_variable(value)
  if not value:find("^%s*%[") then
    return { value, "worker" }, true
  end
  local is_json, command = pcall(vim.json.decode, value)
  if is_json and #command > 0 and #vim.tbl_filter(function(word)
    return type(word) ~= "string"
  end, command) == 0 then
    return command, false
  end
  error("lmwire: $LMWIRE_WORKER must be a program, or a command as a JSON list of strings", 0)
end

--- Return the worker's command, whether it runs on this machine for certain, and the longest wait for its first reply.
---
--- @param configured table|nil The command of the settings.
function M.find(configured)
  local variable = vim.env.LMWIRE_WORKER
  if configured then
    return configured, false, START_TIMEOUT_MS
  elseif variable and variable ~= "" then
    local command, is_local = from_variable(variable)
    return command, is_local, START_TIMEOUT_MS
  elseif vim.fn.executable("lmwire") == 1 then
    return { vim.fn.exepath("lmwire"), "worker" }, true, START_TIMEOUT_MS
  elseif vim.fn.executable("uvx") == 1 then
    return { vim.fn.exepath("uvx"), "--from", packages(), "lmwire", "worker" }, true, DOWNLOAD_TIMEOUT_MS
  end
  error(("lmwire: no worker found; install it with `pip install '%s'`, or install uv"):format(packages()), 0)
end

--- Return the command that lists the models where the worker runs: its own, with `models --json` instead of `worker`.
function M.models_command(command)
  for index = #command, 1, -1 do
    if command[index] == "worker" then
      return vim.list_extend(vim.list_slice(command, 1, index - 1), { "models", "--json" })
    end
  end
end

return M
