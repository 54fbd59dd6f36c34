// Tiny models of goldens/variants: weights, tokens and sums of gradients by the formula of
// tests/reference/variant_weights.py, and their folders.

#pragma once

#include "core/run/golden_rig.h"

#include <QJsonArray>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

namespace mr::test {

// Word i is the finaliser of splitmix64 over key + (i + 1) * gamma.
inline std::uint64_t variantWord(std::uint64_t key, std::size_t i)
{
    std::uint64_t z = key + (i + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

inline std::uint64_t fnv1a(std::string_view text)
{
    std::uint64_t value = 0xCBF29CE484222325U;
    for (const char c : text)
        value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return value;
}

inline std::uint64_t variantKey(std::string_view name, std::uint64_t seed)
{
    return fnv1a(name) ^ variantWord(seed, 0);
}

struct Spread {
    double centre = 0.0;
    double spread = 0.0; // a multiple of 1 / 1024, so that every element is exact in double
};

inline Spread spreadOf(
    std::string_view name, const std::vector<std::int64_t>& shape, const ModelConfig& config)
{
    constexpr std::array<std::pair<std::string_view, Spread>, 6> kSpecial = {
        {{".A_log", {-0.25, 1.375}}, {".dt_bias", {-1.0, 1.25}}, {".conv1d.weight", {0.0, 0.75}},
            {".bias", {0.0, 0.25}}, {".embed_tokens.weight", {0.0, 0.5}},
            {".layer_scalar", {0.75, 0.5}}}};
    const bool norms = name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight");
    if (norms && config.block.normsValues) // nothing else scales the scores of such a model
        return {0.5, 0.375};
    for (const auto& [end, spread] : kSpecial)
        if (name.ends_with(end))
            return spread;
    if (shape.size() == 1)
        return {
            config.onePlusNorms && !name.ends_with("linear_attn.norm.weight") ? 0.0 : 1.0, 0.375};
    const auto columns = static_cast<double>(shape.back());
    return {0.0, std::floor(1024.0 * std::sqrt(3.0 / columns) + 0.5) / 1024.0};
}

// The name in a text model, whatever the spelling of the file.
inline std::string plainName(const std::string& name, const TensorPrefix& files)
{
    if (name.starts_with(files.model))
        return "model." + name.substr(files.model.size());
    return name.substr(files.head.size());
}

inline std::vector<float> variantValues(const std::string& spelled,
    const std::vector<std::int64_t>& shape, const ModelConfig& config, std::uint64_t seed)
{
    const std::string name = plainName(spelled, config.prefix);
    const Spread by = spreadOf(name, shape, config);
    const std::uint64_t key = variantKey(name, seed);
    std::size_t count = 1;
    for (const std::int64_t size : shape)
        count *= static_cast<std::size_t>(size);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double u = static_cast<double>(variantWord(key, i) >> 40U) / 8388608.0 - 1.0;
        values[i] = static_cast<float>(by.centre + by.spread * u);
    }
    return values;
}

inline SafetensorSource floatSource(
    const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values)
{
    const std::uint64_t bytes = values.size() * sizeof(float);
    return {name, "F32", std::move(shape), bytes,
        [held = std::move(values)](std::uint64_t offset, std::span<std::byte> out) {
            std::memcpy(
                out.data(), reinterpret_cast<const std::byte*>(held.data()) + offset, out.size());
            return Status();
        }};
}

// One model of a file of goldens/variants.
struct VariantModel {
    QJsonObject config;
    QJsonObject about;
    qsizetype sums = 0; // of each gradient

    std::uint64_t seed() const { return static_cast<std::uint64_t>(about["seed"].toInteger()); }

    // The spelling of the file's names.
    TensorPrefix prefix() const
    {
        const QJsonArray given = about["prefix"].toArray();
        for (const TensorPrefix& each : kSpellings)
            if (given.size() == 2 && each.model == given[0].toString().toStdString())
                return each;
        return kSpellings.front();
    }

    // Tensors of the file that are not trained.
    std::map<std::string, std::vector<std::int64_t>> others(const ModelConfig& read) const
    {
        const auto layer = [&](std::int64_t at) {
            return std::string(read.prefix.model) + "layers." + std::to_string(at) + ".";
        };
        std::map<std::string, std::vector<std::int64_t>> shapes;
        for (const QJsonValue& name : about["carried"].toArray())
            shapes[name.toString().toStdString()] = {3};
        for (const QJsonValue& at : about["unread"].toArray())
            for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"})
                shapes[layer(at.toInt()) + "self_attn." + name] = {3};
        const QJsonArray missing = about["missing_scalars"].toArray();
        for (std::int64_t at = 0; !read.layerScalars.empty() && at < read.layers; ++at)
            if (!missing.contains(QJsonValue(static_cast<qint64>(at))))
                shapes[layer(at) + std::string(read.layerScalars)] = {1};
        return shapes;
    }

    // config.json and model.safetensors.
    void write(const std::filesystem::path& folder) const
    {
        const QByteArray text = QJsonDocument(config).toJson(QJsonDocument::Compact);
        std::ofstream(folder / "config.json") << text.constData();
        ModelConfig read = valueOf(parseModelConfig(text.constData(), "config.json"));
        read.prefix = prefix();
        read.tiedEmbedding = about["tied"].toBool(read.tiedEmbedding);
        read.trainsInputs = true; // its table is of the file, in parts
        std::map<std::string, std::vector<std::int64_t>> shapes = others(read);
        for (const NamedTensor& tensor : buildParamTable(read).tensors)
            shapes[tensor.name] = tensor.fileShape();
        std::vector<SafetensorSource> sources;
        for (const auto& [name, shape] : shapes)
            sources.push_back(floatSource(name, shape, variantValues(name, shape, read, seed())));
        require(writeSafetensors(folder / "model.safetensors", sources));
    }

    std::vector<TokenSequence> documents(std::int64_t vocab) const
    {
        const std::uint64_t key = variantKey("ids", seed());
        std::vector<TokenSequence> made;
        std::size_t at = 0;
        for (const QJsonValue& length : about["lengths"].toArray()) {
            TokenSequence& document = made.emplace_back();
            for (int i = 0; i < length.toInt(); ++i) {
                const auto id =
                    (variantWord(key, at++) >> 11U) % static_cast<std::uint64_t>(vocab - 8);
                document.tokens.push_back(static_cast<TokenId>(id));
                document.trained.push_back(1);
            }
        }
        return made;
    }
};

inline std::vector<VariantModel> variantsOf(const QString& mechanism)
{
    const std::filesystem::path path = goldens() / "variants" / (mechanism.toStdString() + ".json");
    QFile text(QString::fromStdString(path.string()));
    if (!text.open(QIODevice::ReadOnly))
        qFatal("%s cannot be read", qPrintable(text.fileName()));
    const QJsonObject file = QJsonDocument::fromJson(text.readAll()).object();
    std::vector<VariantModel> models;
    for (const QJsonValue& value : file["models"].toArray()) {
        VariantModel& model = models.emplace_back();
        model.about = value.toObject();
        model.sums = file["sums"].toInt();
        model.config = file["base"].toObject();
        const QJsonObject own = model.about["config"].toObject();
        for (auto field = own.begin(); field != own.end(); ++field)
            model.config[field.key()] = field.value();
    }
    return models;
}

} // namespace mr::test
