--- Splits the bytes of a stream into lines.
local LineSplitter = {}
LineSplitter.__index = LineSplitter

--- @param limit number Longest line, in bytes.
function LineSplitter.new(limit)
  return setmetatable({ limit = limit, parts = {}, size = 0 }, LineSplitter)
end

local function keep(self, bytes)
  self.parts[#self.parts + 1] = bytes
  self.size = self.size + #bytes
end

--- Add bytes. Return the lines that they complete, and whether a line is too long, with or without its newline.
function LineSplitter:push(bytes)
  local lines, start = {}, 1
  local newline = bytes:find("\n", start, true)
  while newline do
    keep(self, bytes:sub(start, newline - 1))
    if self.size > self.limit then
      return lines, true
    end
    lines[#lines + 1] = table.concat(self.parts)
    self.parts, self.size = {}, 0
    start = newline + 1
    newline = bytes:find("\n", start, true)
  end
  keep(self, bytes:sub(start))
  return lines, self.size > self.limit
end

return LineSplitter
