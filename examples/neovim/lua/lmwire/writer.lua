--- Inserts text into a buffer while it arrives, as one step of undo.
local Writer = {}
Writer.__index = Writer

local NAMESPACE = vim.api.nvim_create_namespace("lmwire")

--- @param buffer number
--- @param row number Line of the text's place, from 0.
--- @param column number Byte in the line, from 0.
--- @param is_continued boolean Whether the text belongs to the step of undo of the last change.
function Writer.new(buffer, row, column, is_continued)
  local self = setmetatable({ buffer = buffer, pending = {} }, Writer)
  -- The first mark stays before the text. The second moves along behind it, whatever else is edited.
  self.first = vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, row, column, { right_gravity = false })
  self.last = vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, row, column, { right_gravity = true })
  self.tick = is_continued and vim.api.nvim_buf_get_changedtick(buffer) or nil
  return self
end

local function position(self, mark)
  return unpack(vim.api.nvim_buf_get_extmark_by_id(self.buffer, NAMESPACE, mark, {}))
end

--- Change the buffer. The change joins the last one in undo, unless the user has edited in between.
local function change(self, edit)
  vim.api.nvim_buf_call(self.buffer, function()
    if self.tick == vim.api.nvim_buf_get_changedtick(self.buffer) then
      pcall(vim.cmd, "undojoin")
    end
    edit()
  end)
  self.tick = vim.api.nvim_buf_get_changedtick(self.buffer)
end

--- Keep the cursor of each window at the end of the buffer if it is there.
local function follow(self, last_line)
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    if vim.api.nvim_win_get_cursor(window)[1] == last_line then
      vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
    end
  end
end

--- Insert the text that waits.
function Writer:flush()
  local text = table.concat(self.pending)
  self.pending = {}
  if text == "" or not vim.api.nvim_buf_is_loaded(self.buffer) then
    return
  end
  local last_line = vim.api.nvim_buf_line_count(self.buffer)
  local row, column = position(self, self.last)
  change(self, function()
    vim.api.nvim_buf_set_text(self.buffer, row, column, row, column, vim.split(text, "\n", { plain = true }))
  end)
  follow(self, last_line)
end

--- Add text. This may run in libuv's callbacks: the buffer changes soon afterwards.
function Writer:add(text)
  local is_scheduled = #self.pending > 0
  table.insert(self.pending, text)
  if not is_scheduled then
    vim.schedule(function()
      self:flush()
    end)
  end
end

--- Change each line of the text for which a function returns another line.
function Writer:replace_lines(replacement)
  local first, last = position(self, self.first), position(self, self.last)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(self.buffer, first, last + 1, false)) do
    local new = replacement(line)
    if new then
      change(self, function()
        vim.api.nvim_buf_set_lines(self.buffer, first + row - 1, first + row, false, { new })
      end)
    end
  end
end

return Writer
