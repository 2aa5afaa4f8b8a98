--- The plugin's functions. :help lmwire describes them.
local config = require("lmwire.config")
local worker = require("lmwire.worker")

local M = {}

--- Take settings; see :help lmwire-settings.
function M.setup(values)
  config.set(values or {})
end

local function percent(progress)
  if not progress or not progress.total or progress.total == 0 then
    return ""
  end
  return string.format(" %s %d%%", progress.stage, math.floor(100 * progress.current / progress.total))
end

--- Return what the worker does, for 'statusline'. It is empty before the first request.
function M.statusline()
  if worker.phase == "off" then
    return ""
  elseif worker.phase == "loading" then
    return "lmwire: loading" .. percent(worker.progress)
  elseif worker.phase ~= "ready" then
    return "lmwire: " .. worker.phase
  end
  local model = worker.model and vim.fn.fnamemodify(worker.model.path, ":t") or "no model"
  return "lmwire: " .. model .. (worker.answering > 0 and ", answering" or "")
end

return M
