// FilledModel: a small model in a folder of its own, with weights that F32 alone holds.

#pragma once

#include "core/model/model_folder.h"

namespace mr::test {

struct FilledModel {
    FilledModel()
        : config(mr::test::config(tinyConfig()))
        , table(buildParamTable(config))
        , master(table)
        , path(dir.path().toStdString())
    {
        (void)master.fill(*initialWeights(config, table, 5)).ok();
        for (auto& low : master.low) // so that the lower halves are not zero anywhere
            for (std::size_t i = 0; i < low.size(); ++i)
                low[i] = static_cast<std::int16_t>(i * 37 % 1000);
    }

    QTemporaryDir dir;
    ModelConfig config;
    ParamTable table;
    MasterBuffers master;
    std::filesystem::path path;
};

inline std::string hashOfFolder(const std::filesystem::path& folder)
{
    Result<ModelConfig> config = readModelConfig(folder);
    if (!config.ok())
        return config.status().message();
    const ParamTable table = buildParamTable(config.value());
    auto weights = openWeights(folder, config.value(), table);
    return weights.ok() ? hashOf(table, *weights.value()) : weights.status().message();
}

} // namespace mr::test
