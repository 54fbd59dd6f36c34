// Conversations as they are trained, one line of JSON each, for chat_count.py.
//
//     chat_tokens MODEL_FOLDER FILE.jsonl
//
// {"error": ...}, or {"rows": [{"text": ..., "ids": [...], "trained": [0, 1, ...]}, ...]}; with
// "dropped": [...] where those parts had to be left out for that, as --map drop= does.

#include "core/data/chat_format.h"
#include "core/data/conversation.h"

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::ordered_json;

mr::Result<Json> answerTo(
    const std::string& line, const mr::ChatFormat& format, const mr::Tokenizer& tokenizer)
{
    const Json row = Json::parse(line);
    mr::Result<Json> read = mr::readConversation(
        {row["messages"].dump(), row.contains("tools") ? row["tools"].dump() : std::string(), {}});
    MR_TRY(read.status());
    Json conversation = std::move(read).value();
    const mr::ChatParts lost = format.unwritten(conversation);
    mr::dropParts(lost, conversation);
    mr::Result<std::vector<mr::TrainedChat>> chats = format.render(conversation);
    MR_TRY(chats.status());
    Json out = {{"rows", Json::array()}};
    for (std::size_t part = 0; part < mr::kChatParts; ++part)
        if (lost[part])
            out["dropped"].push_back(mr::kPartWords.at(part).name);
    for (const mr::TrainedChat& chat : chats.value()) {
        mr::Result<mr::ChatTokens> tokens = mr::encodeChat(chat, tokenizer);
        MR_TRY(tokens.status());
        out["rows"].push_back({{"text", chat.chat.text()}, {"ids", tokens.value().ids},
            {"trained", tokens.value().trained}});
    }
    return out;
}

} // namespace

int main(int count, char** words)
{
    if (count != 3)
        return 2;
    auto tokenizer = mr::Tokenizer::open(words[1]);
    auto format = mr::ChatFormat::open(words[1]);
    std::ifstream file(words[2]);
    for (std::string line; std::getline(file, line);) {
        mr::Status status = tokenizer.ok() ? format.status() : tokenizer.status();
        Json out;
        if (status.ok()) {
            mr::Result<Json> found = answerTo(line, format.value(), *tokenizer.value());
            status = found.status();
            if (found.ok())
                out = std::move(found).value();
        }
        if (!status.ok())
            out["error"] = status.message();
        std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    }
    return 0;
}
