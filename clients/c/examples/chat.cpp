/* Ask a question in C++: c++ -std=c++17 -I.. chat.cpp, linked with lmwire.c that a C compiler has compiled. */
#include <iostream>

#include "lmwire.hpp"

int main(int count, char **arguments) {
    try {
        lmwire::Worker worker;
        worker.load("builtin:tiny");
        lmwire::Request request = worker.chat(count > 1 ? arguments[1] : "Who are you?");
        while (const lmwire_event *event = request.next())
            if (event->kind == LMWIRE_TOKEN && event->channel == LMWIRE_CONTENT)
                std::cout << std::string_view(event->text, event->text_length) << std::flush;
        std::cout << std::endl;
    } catch (const lmwire::Error &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
