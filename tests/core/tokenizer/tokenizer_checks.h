// Helpers of the tokenizer tests: ids, parts, refusals, and the goldens of the tokenizers package.

#pragma once

#include "core/data/data_files.h"
#include "core/tokenizer/tokenizer.h"

#include <nlohmann/json.hpp>

namespace mr::test {

inline std::unique_ptr<Tokenizer> openOrFail(const std::string& path)
{
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(path);
    if (!tokenizer.ok())
        qFatal("%s", tokenizer.status().message().c_str());
    return std::move(tokenizer).value();
}

inline std::vector<TokenId> ids(const Tokenizer& tokenizer, const std::string& text)
{
    std::vector<TokenId> out;
    if (const Status status = tokenizer.encode(text, out); !status.ok())
        qFatal("%s", status.message().c_str());
    return out;
}

struct Encoded {
    std::vector<TokenId> ids;
    std::vector<std::size_t> ends;
};

inline Encoded encoded(const Tokenizer& tokenizer, const std::vector<TextPart>& parts)
{
    Encoded out;
    if (const Status status = tokenizer.encodeParts(parts, out.ids, out.ends); !status.ok())
        qFatal("%s", status.message().c_str());
    if (out.ids.size() != out.ends.size())
        qFatal("%zu ids, %zu ends", out.ids.size(), out.ends.size());
    return out;
}

inline std::string refusal(const std::string& path)
{
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(path);
    return tokenizer.ok() ? std::string("it was accepted") : tokenizer.status().message();
}

// FNV-1a, as tests/reference/bpe_reference.py has it.
inline std::uint64_t hashOf(std::string_view bytes)
{
    std::uint64_t value = 0xCBF29CE484222325U;
    for (const char c : bytes)
        value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return value;
}

inline std::uint64_t hashOf(const std::vector<TokenId>& all)
{
    return hashOf({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(TokenId)});
}

inline QString hex(std::uint64_t value, int digits)
{
    return QStringLiteral("%1").arg(value, 16, 16, QLatin1Char('0')).right(digits);
}

inline nlohmann::json golden(const char* name)
{
    const nlohmann::json parsed =
        nlohmann::json::parse(readFile(qEnvironmentVariable("MILLRACE_SOURCE").toStdString() +
                                       "/tests/core/data/goldens/" + name),
            nullptr, false);
    if (!parsed.is_object())
        qFatal("%s is missing", name);
    return parsed;
}

// The tokenizer.json of a variant.
inline nlohmann::json assemble(const nlohmann::json& goldens, const nlohmann::json& variant)
{
    nlohmann::json out = variant["fields"];
    nlohmann::json model = goldens["models"][variant["base"].get<std::string>()];
    if (out.contains("model"))
        model.update(out["model"]);
    out["model"] = model;
    if (!out.contains("decoder"))
        out["decoder"]["type"] = "ByteLevel";
    return out;
}

// Rows of a test that puts `value` at `pointer` of a tokenizer.json and looks for `message`.
inline void addRefusalColumns()
{
    QTest::addColumn<QByteArray>("pointer");
    QTest::addColumn<QByteArray>("value");
    QTest::addColumn<QByteArray>("message");
}

inline void addRefusal(const char* pointer, const char* value, const char* message)
{
    QTest::newRow((std::string(pointer) + " " + value).c_str())
        << QByteArray(pointer) << QByteArray(value) << QByteArray(message);
}

} // namespace mr::test
