--- JSON as the protocol wants it: exact numbers, strict UTF-8, and null as absent.
local M = {}

-- Each sequence of bytes that is a character of UTF-8 (RFC 3629, section 4). Lead bytes decide the length.
local CHARACTERS = {
  "[\194-\223][\128-\191]",
  "\224[\160-\191][\128-\191]",
  "[\225-\236\238\239][\128-\191][\128-\191]",
  "\237[\128-\159][\128-\191]",
  "\240[\144-\191][\128-\191][\128-\191]",
  "[\241-\243][\128-\191][\128-\191][\128-\191]",
  "\244[\128-\143][\128-\191][\128-\191]",
}

--- Return whether bytes are UTF-8. vim.json does not check it.
function M.is_utf8(bytes)
  if not bytes:find("[\128-\255]") then
    return true
  end
  for _, character in ipairs(CHARACTERS) do
    bytes = bytes:gsub(character, "?")
  end
  return not bytes:find("[\128-\255]")
end

-- Numbers that vim.json reads and JSON does not have: NaN, infinity and hexadecimal ones.
local FOREIGN_NUMBERS = { "[Nn][Aa][Nn]", "[Ii][Nn][Ff]", "0[Xx]" }

local function has_foreign_number(line)
  for _, pattern in ipairs(FOREIGN_NUMBERS) do
    -- Text may have them too. It is taken out only where one was found, which is rare.
    if line:find(pattern) and line:gsub("\\.", ""):gsub('"[^"]*"', ""):find(pattern) then
      return true
    end
  end
  return false
end

--- Return the object of a line, without members that are null. Return nil if the line is anything else.
function M.decode_object(line)
  if not line:find("^%s*{") or not M.is_utf8(line) or has_foreign_number(line) then
    return nil
  end
  local is_json, value = pcall(vim.json.decode, line, { luanil = { object = true } })
  return is_json and type(value) == "table" and value or nil
end

local function encode_table(value)
  local items = {}
  if #value > 0 or (next(value) == nil and getmetatable(value) == nil) then
    for index, item in ipairs(value) do
      items[index] = M.encode(item)
    end
    return "[" .. table.concat(items, ",") .. "]"
  end
  for name, member in pairs(value) do
    items[#items + 1] = M.encode(name) .. ":" .. M.encode(member)
  end
  return "{" .. table.concat(items, ",") .. "}"
end

--- Return the JSON text of a value. An empty table is a list, and vim.empty_dict() an object.
---
--- vim.json.encode keeps 14 digits of a number, and seeds have 16.
function M.encode(value)
  if type(value) == "table" then
    return encode_table(value)
  elseif type(value) ~= "number" then
    return vim.json.encode(value)
  elseif value ~= value or value == math.huge or value == -math.huge then
    error("a number that is not finite cannot be sent")
  end
  local is_integer = value == math.floor(value) and math.abs(value) <= 2 ^ 53
  return string.format(is_integer and "%.0f" or "%.17g", value)
end

--- Return a command as a line. `id` comes first, so that the worker finds it in a line that it cannot read.
function M.encode_command(id, name, fields)
  local members = { '"id":' .. M.encode(id), '"cmd":' .. M.encode(name) }
  for field, value in pairs(fields) do
    members[#members + 1] = M.encode(field) .. ":" .. M.encode(value)
  end
  return "{" .. table.concat(members, ",") .. "}\n"
end

return M
