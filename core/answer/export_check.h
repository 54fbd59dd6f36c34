// ExportCheck: does an exported model answer as the one it was made of?
//
// Both are asked alike, one after the other, so that one model is in memory at a time: 200 texts
// are tokenized, a conversation is written by the chat template, prompts are continued greedily by
// the original, and the other one is led along the same tokens.
//
// Threads  One thread; blocks on files and the device.
// Errors   Those of loading a model, and of `goesOn`. What differs is no error but part of the
//          verdict.
// Units    Bytes.

#pragma once

#include "core/answer/inference.h"
#include "core/device/device.h"

#include <millrace/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mr {

// A model that is asked.
struct CheckedModel {
    std::string folder;
    std::string adapter = {};
    std::string chatTemplate = {}; // taught with the adapter; empty: the folder's own
};

struct CheckQuestions {
    std::vector<std::vector<TokenId>> prompts; // by the tokenizer of the original
    std::int64_t answerTokens = 16;            // of each
    DType compute = DType::F32;
    // Makes a device with so many bytes for a model.
    std::function<Result<std::unique_ptr<Device>>(std::size_t bytes)> makeDevice;
    // Asked before each model, prompt and token of an answer; its error ends the check. May be
    // empty.
    std::function<Status()> goesOn = {};
};

struct ExportVerdict {
    std::int64_t texts = 0; // that were tokenized
    std::int64_t sameTexts = 0;
    std::string otherText; // the first that became other tokens
    bool sameTemplate = true;
    bool sameEnds = true;
    std::int64_t prompts = 0;
    std::int64_t tokens = 0;     // of the original's answers
    std::int64_t sameTokens = 0; // that the export finds the likeliest, too
    double divergence = 0.0;     // mean KL of the distributions of the next token, in nats

    double agreement() const noexcept
    {
        return tokens == 0 ? 1.0 : static_cast<double>(sameTokens) / static_cast<double>(tokens);
    }
};

// Limits of the verdict; those of coarse types are wide.
struct CheckLimits {
    double divergence = 1e-4;
    double agreement = 0.97;
    double texts = 1.0; // share of texts that become the same tokens
};

// Memory that checkExport() needs at a time: that of the original, beside which the adapter lies,
// and of its answers. The exported model has no adapter and needs no more.
Result<std::uint64_t> checkBytes(const CheckedModel& original, const CheckQuestions& questions);

Result<ExportVerdict> checkExport(
    const CheckedModel& original, const CheckedModel& exported, const CheckQuestions& questions);

// Sentences on what differs more than it may; none: the export answers as the original.
std::vector<std::string> faultsOf(const ExportVerdict& verdict, const CheckLimits& limits);

} // namespace mr
