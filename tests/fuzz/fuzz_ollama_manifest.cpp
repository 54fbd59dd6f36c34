#include "core/found/ollama_manifest.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace mr::fuzz {

void ollamaManifest(std::string_view bytes)
{
    Result<std::vector<OllamaLayer>> layers = parseOllamaManifest(bytes, "manifest");
    if (!check(layers))
        return;
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (const OllamaLayer& layer : layers.value()) {
        require(layer.digest.size() == 64, "a digest of another length");
        require(layer.digest.find_first_not_of(kDigits) == std::string::npos,
            "a digest that may lead out of the store");
    }
}

} // namespace mr::fuzz
