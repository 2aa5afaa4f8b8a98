//! A chat window whose model runs in a child process.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use chat_service::{ChatEvent, ChatService, bundled_worker};
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, RunEvent, State};

/// Load a model: a folder, a hub id or an alias. The last event of the channel is the end.
#[tauri::command]
async fn load(service: State<'_, ChatService>, model: String, on_event: Channel<ChatEvent>) -> Result<(), ()> {
    service.load(&model, |event| send(&on_event, event)).await;
    Ok(())
}

/// Answer the user's next message. The last event of the channel is the end.
#[tauri::command]
async fn chat(service: State<'_, ChatService>, text: String, on_event: Channel<ChatEvent>) -> Result<(), ()> {
    service.chat(&text, |event| send(&on_event, event)).await;
    Ok(())
}

/// End the load that runs, or the answer with its text so far.
#[tauri::command]
fn stop(service: State<'_, ChatService>) {
    service.stop();
}

fn send(channel: &Channel<ChatEvent>, event: ChatEvent) {
    let _ = channel.send(event); // fails if the window is closed
}

fn main() {
    let app = tauri::Builder::default()
        .setup(|app| {
            let resources = app.path().resource_dir()?;
            app.manage(ChatService::new(bundled_worker(&resources)));
            Ok(())
        })
        .invoke_handler(tauri::generate_handler![load, chat, stop])
        .build(tauri::generate_context!())
        .expect("the configuration of Tauri is right");
    app.run(|app, event| {
        if let RunEvent::Exit = event {
            close(app);
        }
    });
}

/// End the worker before the app ends.
fn close(app: &AppHandle) {
    let service = app.state::<ChatService>();
    if let Err(error) = tauri::async_runtime::block_on(service.close()) {
        eprintln!("{error}");
    }
}
