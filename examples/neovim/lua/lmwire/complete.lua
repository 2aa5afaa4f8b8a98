--- Completions: at the cursor, of a selection, or of a selection by an instruction.
local Writer = require("lmwire.writer")
local config = require("lmwire.config")
local worker = require("lmwire.worker")

local M = {}

--- Cut text to so many bytes of its end or its start, at a line's border.
function M.clip(text, bytes, is_end)
  if #text <= bytes then
    return text
  elseif is_end then
    return text:sub(-bytes):gsub("^[^\n]*\n", "", 1)
  end
  return (text:sub(1, bytes):gsub("\n[^\n]*$", "\n", 1))
end

local function text_between(row, column, last_row, last_column)
  return table.concat(vim.api.nvim_buf_get_text(0, row, column, last_row, last_column, {}), "\n")
end

--- Return the place at which text is inserted: where it is typed in insert mode, and after the cursor in normal mode.
local function cursor_place()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  if vim.fn.mode():sub(1, 1) ~= "i" and column < #line then
    column = column + 1 + vim.str_utf_end(line, column + 1)
  end
  return row - 1, column
end

--- Return the first and the last place of the lines, or of the characters that were selected in them.
local function selection(first, last)
  local start, finish = vim.api.nvim_buf_get_mark(0, "<"), vim.api.nvim_buf_get_mark(0, ">")
  local line = vim.api.nvim_buf_get_lines(0, last - 1, last, true)[1]
  if vim.fn.visualmode() ~= "v" or start[1] ~= first or finish[1] ~= last then
    return first - 1, 0, last - 1, #line
  end
  local column = math.min(finish[2], #line)
  local last_column = column < #line and column + 1 + vim.str_utf_end(line, column + 1) or #line
  return first - 1, start[2], last - 1, last_column
end

local function end_place()
  local rows = vim.api.nvim_buf_line_count(0)
  return rows - 1, #vim.api.nvim_buf_get_lines(0, rows - 1, rows, true)[1]
end

--- Send a request, and write its answer at a place.
local function write_answer(writer, command, to_fields)
  worker.generate(command, to_fields, {
    text = function(text)
      writer:add(text)
    end,
    done = function() end,
    failed = worker.report,
  })
end

--- Continue the text before a place. A model that can fill gaps also considers the text after it.
local function continue(before, row, column)
  local size = config.values.context_bytes
  local after = M.clip(text_between(row, column, end_place()), size, false)
  write_answer(Writer.new(vim.api.nvim_get_current_buf(), row, column), "generate", function(model, features)
    local fields = vim.tbl_extend("force", config.values.complete, { prompt = M.clip(before, size, true) })
    if vim.tbl_contains(model.capabilities, "suffix") and vim.tbl_contains(features, "generate.suffix") then
      fields.suffix = after
    elseif before == "" then
      return nil, "there is no text before the cursor, and this model cannot fill gaps"
    end
    return fields
  end)
end

--- Complete the text at the cursor.
function M.at_cursor()
  local row, column = cursor_place()
  continue(text_between(0, 0, row, column), row, column)
end

--- Continue the selected text by itself. The answer follows it.
function M.selection(first, last)
  local row, column, last_row, last_column = selection(first, last)
  continue(text_between(row, column, last_row, last_column), last_row, last_column)
end

--- Replace the selected text with the answer to an instruction.
function M.instruct(first, last, instruction)
  local row, column, last_row, last_column = selection(first, last)
  local text = text_between(row, column, last_row, last_column)
  vim.api.nvim_buf_set_text(0, row, column, last_row, last_column, {})
  local messages = { { role = "user", content = instruction .. "\n\n" .. text } }
  write_answer(Writer.new(vim.api.nvim_get_current_buf(), row, column, true), "chat", function()
    return vim.tbl_extend("force", config.values.complete, { messages = messages })
  end)
end

return M
