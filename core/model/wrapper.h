// Wrappers: models that see or hear, whose text part is one of the families (architecture.h). Their
// config.json has the text's fields within "text_config"; their files hold towers beside it.
//
// The text part is trained. Everything else is carried (carried_tensors.h).
//
// Threads  Pure.
// Errors   InvalidArgument names both fields where the two levels contradict each other, or a text
//          part that is not supported.
// Source   reference: families_2026 section 2.1. transformers completes text_config from the class
//          of the text; the defaults of the wrapper's class count where text_config is missing.

#pragma once

#include <millrace/status.h>

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace mr {

// The beginnings of names of a model's tensors in files.
struct TensorPrefix {
    std::string_view model = "model.";
    std::string_view head = {};

    bool operator==(const TensorPrefix&) const = default;
};

// A model by itself; within another, newer and older files.
inline constexpr std::array<TensorPrefix, 3> kSpellings = {
    {{"model.", ""}, {"model.language_model.", ""}, {"language_model.model.", "language_model."}}};

struct WrappedText {
    std::string_view modelType;
    std::string_view missing; // fields that may be missing, as JSON: the defaults of its own class
};

struct WrapperTraits {
    std::string_view name;                     // architectures[0]
    std::string_view modelType;                // model_type
    std::span<const WrappedText> texts;        // the last: if model_type is missing
    TensorPrefix prefix;                       // of published files
    std::span<const std::string_view> carried; // names of carried tensors: isCarried()
    bool tiedByDefault = true;
    bool capsLogits = false; // final_logit_softcapping of the text part counts
};

std::span<const WrapperTraits> wrappers() noexcept;

// Null for a model by itself. `config` is an object.
const WrapperTraits* wrapperOf(const nlohmann::json& config) noexcept;

// The fields of the text part, completed by defaults and by what the outer level says for it.
Result<nlohmann::json> textConfig(
    const WrapperTraits& wrapper, const nlohmann::json& config, const std::string& source);

// Does neither level say whether the head is the embedding, so that the files do? The outer default
// and the inner one differ, and so do programs.
bool leavesTieOpen(const nlohmann::json& config) noexcept;

} // namespace mr
