// Mean cross-entropy of what a run saved, on the pairs it was trained on.

#pragma once

// The engine's headers come before those of Qt.
// clang-format off
#include "core/answer/inference.h"
#include "core/run/run_rig.h"
// clang-format on

#include <string>

namespace mr::test {

// Ends the program if the model cannot be loaded.
inline double lossOf(const RunRig& rig, const std::string& model, const std::string& adapter = {})
{
    const auto device = smallDevice();
    InferenceOptions options;
    options.seqLen = 40;
    options.adapter = adapter;
    auto loaded = InferenceModel::load(model, options, *device);
    if (!loaded.ok())
        qFatal("%s", loaded.status().message().c_str());
    TokenSetOptions set;
    set.seqLen = 40;
    const auto pairs = buildTokenSet(
        {{rig.folder.path("pairs.jsonl"), DataFormat::Auto, {}}}, loaded.value()->tokenizer(), set);
    return loaded.value()->evaluate(Result(pairs).value()).value().loss;
}

} // namespace mr::test
