// Ask a question in Swift: cc -c lmwire.c && ar rc liblmwire.a lmwire.o && swiftc -I . -L . examples/chat.swift
//
// Swift imports no C function with a variable number of arguments: build commands with JSONSerialization, and send them
// with lmwire_send.
import CLmwire
import Foundation

func fail(_ worker: OpaquePointer?) -> Never {
    FileHandle.standardError.write(Data((String(cString: lmwire_message(worker)) + "\n").utf8))
    exit(1)
}

let prompt = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "Who are you?"
let fields: [String: Any] = ["cmd": "chat", "messages": [["role": "user", "content": prompt]], "max_tokens": 200]
let command = try JSONSerialization.data(withJSONObject: fields)

var worker: OpaquePointer?
guard lmwire_start(&worker, nil) == LMWIRE_OK, lmwire_load(worker, "builtin:tiny") == LMWIRE_OK else { fail(worker) }
defer {
    lmwire_close(worker)
    lmwire_free(worker)
}

var request: OpaquePointer?
let sent = command.withUnsafeBytes { bytes in
    lmwire_send(worker, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, &request)
}
guard sent == LMWIRE_OK else { fail(worker) }

var event: UnsafePointer<lmwire_event>?
while lmwire_next(request, -1, &event) == LMWIRE_OK, let event = event?.pointee {
    if event.kind == LMWIRE_TOKEN, event.channel == LMWIRE_CONTENT {
        FileHandle.standardOutput.write(Data(bytes: event.text, count: event.text_length))
    }
}
guard lmwire_wait(request, -1) == LMWIRE_OK else { fail(worker) }
print()
