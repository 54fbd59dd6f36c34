#include "core/found/ollama_manifest.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::string_view kImage = "application/vnd.ollama.image.";
constexpr std::string_view kHash = "sha256:";
constexpr std::size_t kHashDigits = 64;

bool isDigest(std::string_view digits)
{
    return digits.size() == kHashDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
}

Result<OllamaLayer> parseLayer(const json& value, const std::string& source)
{
    constexpr IntRange kBytes{0, std::numeric_limits<std::int64_t>::max()};
    JsonFields fields(value, source);
    OllamaLayer layer;
    const std::string type = fields.text("mediaType", "");
    const std::string digest = fields.text("digest", "");
    layer.bytes = static_cast<std::uint64_t>(fields.requiredInteger("size", kBytes));
    if (type.starts_with(kImage))
        layer.kind = type.substr(kImage.size());
    if (digest.starts_with(kHash))
        layer.digest = digest.substr(kHash.size());
    if (!isDigest(layer.digest))
        fields.fail("digest",
            "is " + shown(json(digest)) + "; it must be sha256: and 64 hexadecimal digits");
    MR_TRY(fields.status());
    return layer;
}

} // namespace

Result<std::vector<OllamaLayer>> parseOllamaManifest(
    std::string_view text, const std::string& source)
{
    MR_ASSIGN(const json manifest, parseJson(text, source));
    JsonFields fields(manifest, source);
    const json* list = fields.find("layers");
    MR_TRY(fields.status());
    if (list == nullptr || !list->is_array()) {
        fields.fail("layers", "must be a list of the blobs of the model");
        return fields.status();
    }
    std::vector<OllamaLayer> layers;
    for (std::size_t i = 0; i < list->size(); ++i) {
        MR_ASSIGN(
            OllamaLayer layer, parseLayer((*list)[i], fmt::format("{}: layer {}", source, i + 1)));
        layers.push_back(std::move(layer));
    }
    return layers;
}

} // namespace mr
