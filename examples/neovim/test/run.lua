--- Runs the tests beside this file: nvim --headless -u NONE -i NONE -n -c "luafile examples/neovim/test/run.lua"
---
--- $LMWIRE names the program `lmwire`. Each test has a worker and buffers of its own.
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local plugin = vim.fn.fnamemodify(here, ":h")
vim.opt.runtimepath:prepend(plugin)
vim.opt.hidden = true
vim.cmd("source " .. plugin .. "/plugin/lmwire.lua")
package.path = here .. "/?.lua;" .. package.path

local support = require("support")
local failures, count = {}, 0

for _, name in ipairs({ "parts_test", "chat_test", "complete_test", "worker_test" }) do
  for _, test in ipairs(require(name)) do
    count = count + 1
    local is_passed, failure = xpcall(test[2], debug.traceback)
    local is_clean, leftover = pcall(support.reset)
    if not (is_passed and is_clean) then
      table.insert(failures, name .. ": " .. test[1] .. "\n" .. tostring(is_passed and leftover or failure))
    end
  end
end

io.stdout:write(table.concat(failures, "\n"), #failures > 0 and "\n" or "")
io.stdout:write(string.format("neovim: %d tests, %d failed\n", count, #failures))
vim.cmd(#failures > 0 and "cquit! 1" or "qall!")
