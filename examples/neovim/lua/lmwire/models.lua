--- The model picker.
local config = require("lmwire.config")
local find_worker = require("lmwire.find_worker")
local worker = require("lmwire.worker")

local M = {}

-- Kinds of models that chat or complete.
local KINDS = { text = true, vision = true }

local function describe(model)
  local bits = type(model.bits) == "number" and (", " .. model.bits .. " bits") or ""
  return string.format("%s (%s%s, %.0f MB)", model.id, model.model_type, bits, model.size_bytes / 1e6)
end

local function choose(models)
  local usable = vim.tbl_filter(function(model)
    return KINDS[model.kind] and model.problem == vim.NIL
  end, models)
  vim.ui.select(usable, { prompt = "Model", format_item = describe }, function(model)
    if model then
      worker.load(model.id)
    end
  end)
end

--- Let the user pick one of the models on the worker's machine.
function M.pick()
  local is_found, command = pcall(find_worker.find, config.values.command, config.values.uvx)
  local list = is_found and find_worker.models_command(command)
  if not list then
    local sentence = is_found and "the worker's command has no word `worker`, so its models cannot be listed" or command
    return worker.notify(sentence, vim.log.levels.ERROR)
  end
  local output = {}
  vim.fn.jobstart(list, {
    stdout_buffered = true,
    on_stdout = function(_, lines)
      output = lines
    end,
    on_exit = function(_, code)
      local is_json, models = pcall(vim.json.decode, table.concat(output, "\n"))
      if code ~= 0 or not is_json then
        return worker.notify(table.concat(list, " ") .. " failed with exit code " .. code, vim.log.levels.ERROR)
      end
      choose(models)
    end,
  })
end

return M
