// Tensors of model folders as floats, by name.

#pragma once

// The engine's headers come before those of Qt.
// clang-format off
#include "core/model/weights.h"
#include "core/device/adamw.h"
// clang-format on

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mr::test {

using Tensors = std::map<std::string, std::vector<float>>;

inline Tensors tensorsIn(MasterReader& reader, const ParamTable& table)
{
    Tensors tensors;
    MasterPiece piece;
    for (const NamedTensor& tensor : table.tensors)
        (void)forPieces(reader, {tensor.group, tensor.first, tensor.count()}, piece,
            [&](std::int64_t, const MasterView& view) {
                std::vector<float>& all = tensors[tensor.name];
                for (std::size_t i = 0; i < view.high.size(); ++i)
                    all.push_back(joinHalves(view.high[i], view.low[i]));
                return Status();
            })
            .ok();
    return tensors;
}

inline Tensors tensorsOf(const std::filesystem::path& folder)
{
    const ModelConfig config = readModelConfig(folder.string()).value();
    const ParamTable table = buildParamTable(config);
    return tensorsIn(*std::move(openWeights(folder, config, table)).value(), table);
}

} // namespace mr::test
