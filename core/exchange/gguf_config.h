// config.json of the model that a GGUF file holds, made of its metadata.
//
// Threads  Pure functions.
// Errors   InvalidArgument names the key that is missing, of another type, or of a model that is
//          not supported.
// Source   reference: export section 3, families_2026 section 5.1; defaults are llama.cpp's.

#pragma once

#include "core/gguf/gguf_file.h"

#include <millrace/status.h>

#include <string>

namespace mr {

// Typed reads of the metadata.
class GgufKeys
{
public:
    explicit GgufKeys(const GgufFile& file);

    const std::string& architecture() const noexcept { return m_architecture; }

    // Keys of the architecture: "attention.head_count" is "llama.attention.head_count".
    Result<std::int64_t> count(const std::string& key) const;
    std::int64_t count(const std::string& key, std::int64_t missing) const;
    double number(const std::string& key, double missing) const;
    bool flag(const std::string& key, bool missing) const;
    std::string text(const std::string& key) const;
    // One for each of `layers`, from a list or from one number; empty: missing or too short.
    std::vector<std::int64_t> each(const std::string& key, std::int64_t layers) const;

    // Any key.
    const GgufValue* find(const std::string& key) const { return m_file.find(key); }
    std::int64_t id(const std::string& name) const; // "tokenizer.ggml.NAME_token_id"; -1: none
    const GgufFile& file() const noexcept { return m_file; }

private:
    const GgufValue* own(const std::string& key) const;

    const GgufFile& m_file;
    std::string m_architecture;
};

Result<std::string> ggufConfigText(const GgufKeys& keys);

} // namespace mr
