#include "core/data/column_words.h"

#include "core/data/untrainable.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace mr {
namespace {

constexpr auto kPrompt = std::to_array<std::string_view>({"prompt", "question", "instruction",
    "query", "problem", "user", "human", "input", "source", "request", "inputs", "questions",
    "input_text", "instructions", "指示", "質問", "問題", "入力"});
constexpr auto kResponse = std::to_array<std::string_view>({"response", "answer", "output",
    "completion", "target", "solution", "reply", "assistant", "label_text", "summary", "outputs",
    "targets", "target_text", "responses", "answers", "応答", "回答", "解答", "出力", "答え"});
constexpr auto kInput = std::to_array<std::string_view>({"input", "context", "passage"});
constexpr auto kSystem =
    std::to_array<std::string_view>({"system", "system_prompt", "system_message"});
constexpr auto kHistory = std::to_array<std::string_view>({"history"});
constexpr auto kText = std::to_array<std::string_view>(
    {"text", "content", "document", "story", "body", "sentence", "本文"});
constexpr auto kChat = std::to_array<std::string_view>({"messages", "conversations", "conversation",
    "dialogue", "dialog", "chat", "contents", "turns"});
constexpr auto kTools = std::to_array<std::string_view>({"tools"});
constexpr auto kIdentifier = std::to_array<std::string_view>(
    {"id", "_id", "idx", "index", "uuid", "guid", "key", "hash", "sha", "md5", "qid", "pid", "uid",
        "row", "no", "nr", "line_number", "row_number", "unnamed: 0", "__index_level_0__"});
constexpr auto kAbout = std::to_array<std::string_view>({"source", "src", "title", "url", "link",
    "lang", "language", "locale", "license", "author", "date", "time", "timestamp", "created",
    "created_at", "updated_at", "dataset", "dataset_name", "domain", "category", "subcategory",
    "topic", "subject", "type", "task_name", "task_type", "tag", "tags", "topics", "categories",
    "keywords", "version", "model", "model_name", "generator", "origin", "difficulty", "level",
    "grade", "score", "file", "filename", "file_name", "path", "provenance", "info", "country",
    "genre", "corpus", "collection", "subset", "split", "fold", "partition"});
constexpr auto kVerdict = std::to_array<std::string_view>({"label", "labels", "correct",
    "is_correct", "correctness", "verdict", "quality", "accepted", "is_accepted", "valid",
    "is_valid", "good", "is_good", "is_answer", "safe", "is_safe", "helpful", "harmful", "toxic",
    "flagged", "approved", "rejected", "passed", "kto_tag", "kto_label", "feedback", "thumbs",
    "vote", "liked", "hallucination", "is_hallucination", "judgement", "judgment", "error"});
constexpr auto kWeight = std::to_array<std::string_view>(
    {"weight", "loss_weight", "sample_weight", "weights", "train", "trainable"});
constexpr auto kSplit = std::to_array<std::string_view>({"split", "fold", "partition"});
constexpr auto kClass = std::to_array<std::string_view>(
    {"label", "labels", "label_text", "class", "class_name", "category", "categories", "sentiment",
        "emotion", "intent", "topic", "topics", "target", "stars", "rating", "genre", "tag", "tags",
        "type", "polarity", "subject", "grade", "difficulty", "level", "toxic", "spam"});

std::span<const std::string_view> wordsOf(NameFamily family)
{
    constexpr std::array<std::span<const std::string_view>, 14> kFamilies{kPrompt, kResponse,
        kInput, kSystem, kHistory, kText, kChat, kTools, kIdentifier, kAbout, kVerdict, kWeight,
        kSplit, kClass};
    return kFamilies.at(static_cast<std::size_t>(family));
}

bool endsAsIdentifier(std::string_view name, std::string_view lower)
{
    return lower.ends_with("_id") || lower.ends_with("-id") || lower.ends_with(" id") ||
           lower.ends_with("_idx") || lower.ends_with("_index") || lower.ends_with("_hash") ||
           lower.starts_with("id_") || name.ends_with("Id") || name.ends_with("ID");
}

bool isAboutBySpelling(std::string_view lower)
{
    return lower.starts_with("meta") || lower.ends_with("_source") || lower.ends_with("_type") ||
           lower.ends_with("_url") || lower.ends_with("_date") || lower.ends_with("_name");
}

} // namespace

bool isNamed(std::string_view name, NameFamily family)
{
    const std::string lower = lowerAscii(name);
    const auto words = wordsOf(family);
    if (std::find(words.begin(), words.end(), lower) != words.end())
        return true;
    if (family == NameFamily::Identifier)
        return endsAsIdentifier(name, lower);
    return family == NameFamily::About && isAboutBySpelling(lower);
}

} // namespace mr
