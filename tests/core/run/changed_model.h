// ChangedModel: the small model of RunRig with another config, and with weights that are filled.

#pragma once

// The engine's headers come before those of Qt.
// clang-format off
#include "core/run/run_rig.h"
// clang-format on

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace mr::test {

// A folder of random weights for a changed config, far apart enough that places matter.
struct ChangedModel {
    explicit ChangedModel(const nlohmann::json& changes = nlohmann::json::object())
    {
        writeSmallModel(folder);
        nlohmann::json config = nlohmann::json::parse(smallModelConfig());
        config["initializer_range"] = 0.6;
        config.update(changes);
        folder.write("config.json", config.dump());
        ModelConfig read = readModelConfig(folder.path()).value();
        read.trainsInputs = true; // so that its file has their table
        const ParamTable table = buildParamTable(read);
        const Folder out;
        const Status saved = saveModel(out.path(), read, table, *initialWeights(read, table, 3),
            ExportType::F32, folder.path());
        if (!saved.ok())
            qFatal("writing a test model failed: %s", saved.message().c_str());
        folder.write("model.safetensors", readFile(out.path("model.safetensors")));
    }

    // Every element of a tensor becomes `value`.
    void fill(const std::string& tensor, float value) const
    {
        change(tensor, [value](float) { return value; });
    }

    // Adds `value` to every element of a tensor.
    void add(const std::string& tensor, float value) const
    {
        change(tensor, [value](float before) { return before + value; });
    }

    Folder folder;

private:
    template <typename F>
    void change(const std::string& tensor, F&& made) const
    {
        std::string bytes = readFile(folder.path("model.safetensors"));
        std::uint64_t length = 0;
        std::memcpy(&length, bytes.data(), 8);
        const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
        const nlohmann::json& offsets = header.at(tensor).at("data_offsets");
        for (std::uint64_t at = offsets[0]; at < offsets[1].get<std::uint64_t>(); at += 4) {
            char* const place = bytes.data() + 8 + length + at;
            float value = 0.0F;
            std::memcpy(&value, place, sizeof value);
            value = made(value);
            std::memcpy(place, &value, sizeof value);
        }
        folder.write("model.safetensors", bytes);
    }
};

} // namespace mr::test
