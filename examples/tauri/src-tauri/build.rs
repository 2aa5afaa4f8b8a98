use tauri_build::{AppManifest, Attributes};

fn main() {
    // Each command needs a permission in capabilities/main.json.
    let commands = AppManifest::new().commands(&["load", "chat", "stop"]);
    tauri_build::try_build(Attributes::new().app_manifest(commands)).expect("the configuration of Tauri is right");
}
