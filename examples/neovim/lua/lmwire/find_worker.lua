--- Finds the worker, in the order of docs/hosts.md. A plugin has no program that a worker could lie beside.
local version = require("lmwire.version")

local M = {}

local START_TIMEOUT_MS = 30 * 1000
-- uvx downloads the packages first.
local DOWNLOAD_TIMEOUT_MS = 600 * 1000

-- Return what uvx installs for this machine's models.
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

-- Return a program of PATH. Empty and relative entries mean the working directory, and are skipped.
local function look_up(name)
  for folder in (vim.env.PATH or ""):gmatch("[^:]+") do
    local program = folder .. "/" .. name
    if folder:sub(1, 1) == "/" and vim.fn.executable(program) == 1 then
      return program
    end
  end
end

--- Return the worker's command, whether it runs on this machine for certain, and the longest wait for its first reply.
---
--- @param configured table|nil The command of the settings.
--- @param uvx boolean|nil Whether uvx may download a worker if no other is found.
function M.find(configured, uvx)
  local variable = vim.env.LMWIRE_WORKER
  if configured then
    return configured, false, START_TIMEOUT_MS
  elseif variable and variable ~= "" then
    local command, is_local = from_variable(variable)
    return command, is_local, START_TIMEOUT_MS
  end
  local program = look_up("lmwire")
  if program then
    return { program, "worker" }, true, START_TIMEOUT_MS
  end
  program = uvx and look_up("uvx")
  if program then
    return { program, "--from", packages(), "lmwire", "worker" }, true, DOWNLOAD_TIMEOUT_MS
  end
  local remedy = uvx and "install uv for the option uvx" or "allow a download with the option uvx"
  error("lmwire: no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or " .. remedy, 0)
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
