--- The check that an event has the form that PROTOCOL.md gives it [H-5].
local forms = require("lmwire.event_forms")

local M = {}

-- By the letters of event_forms. A null member is removed before, so that an empty table can be an object too.
local IS_OF_TYPE = {
  s = function(value)
    return type(value) == "string"
  end,
  n = function(value)
    return type(value) == "number"
  end,
  b = function(value)
    return type(value) == "boolean"
  end,
  l = function(value)
    return type(value) == "table" and (value[1] ~= nil or (next(value) == nil and getmetatable(value) == nil))
  end,
  o = function(value)
    return type(value) == "table" and value[1] == nil
  end,
}
IS_OF_TYPE.i = IS_OF_TYPE.n

--- Return the node below a node at a name, or the one of the items of a list.
local function below(node, name)
  if name == "[]" then
    node.items = node.items or { members = {} }
    return node.items
  end
  node.members[name] = node.members[name] or { members = {} }
  return node.members[name]
end

--- Return a tree of nodes for each form.
local function trees()
  local roots = {}
  for _, row in ipairs(forms.MEMBERS) do
    local form, path, types, required = unpack(row)
    roots[form] = roots[form] or { types = "o", members = {} }
    local node = roots[form]
    for name in path:gsub("%[%]", ".[]"):gmatch("[^.]+") do
      node = below(node, name)
    end
    node.types, node.is_required = types, required == 1
  end
  return roots
end

local TREES = trees()

local function is_of_types(value, types)
  for letter in types:gmatch(".") do
    if IS_OF_TYPE[letter](value) then
      return true
    end
  end
  return false
end

local function has_form(value, node)
  if value == nil then
    return not node.is_required
  elseif not is_of_types(value, node.types) then
    return false
  elseif type(value) ~= "table" then
    return true
  end
  for _, item in ipairs(node.items and value or {}) do
    if not has_form(item, node.items) then
      return false
    end
  end
  for name, member in pairs(node.members) do
    if not has_form(value[name], member) then
      return false
    end
  end
  return true
end

--- Return whether an event is of a kind that the protocol has.
function M.is_known(event)
  return forms.EVENTS[event] ~= nil
end

--- Return whether an event has the members that are always present, and each member its type.
---
--- @param event table The event, without members that are null.
--- @param command string The command of its request. It decides the form of `done`.
function M.is_well_formed(event, command)
  local tree = TREES[event.event == "done" and forms.DONES[command] or event.event]
  return tree == nil or has_form(event, tree)
end

return M
