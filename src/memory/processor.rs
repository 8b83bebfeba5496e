//! Name of the processor that the library runs on.

use once_cell::sync::Lazy;

static MODEL: Lazy<String> = Lazy::new(|| {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = model.map_or("CPU", |(_, name)| name.trim());
    format!("{name}, {}", std::env::consts::ARCH)
});

/// Returns the processor's name and instruction set.
pub fn model() -> String {
    MODEL.clone()
}
