// Layouts that hold conversations, or plain text.

#include "core/data/layouts.h"

#include <array>

namespace mr {
namespace {

constexpr auto kConversationLayouts = std::to_array<Layout>({
    {"OpenAI messages", "platform.openai.com/docs/guides/supervised-fine-tuning",
        DataKind::Conversation,
        "messages:chat tools?:any functions?:list parallel_tool_calls?:truth",
        "messages=messages,tools=tools"},
    {"ShareGPT", "github.com/lm-sys/FastChat, data format", DataKind::Conversation,
        "id?:scalar conversations:chat system? tools?:any",
        "messages=conversations,system=system,tools=tools"},
    {"ms-swift ShareGPT", "swift.readthedocs.io, custom dataset", DataKind::Conversation,
        "system? conversation:chat", "messages=conversation,system=system"},
    {"Capybara", "huggingface.co/datasets/LDJnr/Capybara", DataKind::Conversation,
        "source?:short conversation:chat", "messages=conversation"},
    {"LIMA", "huggingface.co/datasets/GAIR/lima", DataKind::Conversation,
        "conversations:turns source?:short", "messages=conversations"},
    {"UltraChat", "huggingface.co/datasets/openbmb/UltraChat", DataKind::Conversation,
        "id?:scalar data:turns", "messages=data"},
    {"UltraChat 200k", "huggingface.co/datasets/HuggingFaceH4/ultrachat_200k",
        DataKind::Conversation, "prompt_id:short messages:chat", "messages=messages"},
    {"OpenHermes 2.5", "huggingface.co/datasets/teknium/OpenHermes-2.5", DataKind::Conversation,
        "conversations:chat system_prompt? source?:short category?:short id?:scalar "
        "custom_instruction?:truth topic?:short title?:short model?:short model_name?:short "
        "language?:short "
        "skip_prompt_formatting?:truth idx?:scalar hash?:scalar views?:scalar avatarUrl?:any",
        "messages=conversations,system=system_prompt"},
    {"Gemini contents", "ai.google.dev/gemini-api/docs/model-tuning", DataKind::Conversation,
        "contents:chat systemInstruction?:object system_instruction?:object tools?:any",
        "messages=contents,system=systemInstruction.parts[0].text,tools=tools"},
    {"Tulu 3", "huggingface.co/datasets/allenai/tulu-3-sft-mixture", DataKind::Conversation,
        "id?:short messages:chat source?:short", "messages=messages"},
    {"WildChat", "huggingface.co/datasets/allenai/WildChat", DataKind::Conversation,
        "conversation_id?:short conversation_hash?:short model?:short timestamp?:any "
        "conversation:chat turn?:number language?:short openai_moderation?:any "
        "detoxify_moderation?:any toxic:truth redacted?:truth state?:short country?:short "
        "hashed_ip?:short header?:any",
        "messages=conversation"},
    {"LMSYS-Chat-1M", "huggingface.co/datasets/lmsys/lmsys-chat-1m", DataKind::Conversation,
        "conversation_id?:short model?:short conversation:chat turn?:number language?:short "
        "openai_moderation?:any redacted?:truth",
        "messages=conversation"},
    {"smoltalk", "huggingface.co/datasets/HuggingFaceTB/smoltalk", DataKind::Conversation,
        "messages:chat source?:short full_topic:any", "messages=messages"},
    {"Hermes function calling", "huggingface.co/datasets/NousResearch/hermes-function-calling-v1",
        DataKind::Conversation,
        "id:short conversations:chat tools?:any category:short subcategory:short task schema?",
        "messages=conversations,tools=tools"},
    {"plain text", "huggingface.co/docs/datasets/nlp_load", DataKind::Text, "text", "text=text"},
    {"Wikipedia", "huggingface.co/datasets/wikimedia/wikipedia", DataKind::Text,
        "id?:scalar url?:any title? text", "text=text"},
    {"C4", "huggingface.co/datasets/allenai/c4", DataKind::Text, "text timestamp:any url:any",
        "text=text"},
    {"FineWeb", "huggingface.co/datasets/HuggingFaceFW/fineweb", DataKind::Text,
        "text id:short dump?:short url:any date?:any file_path?:any language?:short "
        "language_score?:number token_count?:number",
        "text=text"},
    {"The Stack", "huggingface.co/datasets/bigcode/the-stack-dedup", DataKind::Text,
        "content lang?:short hexsha?:short size?:number ext?:short avg_line_length?:number "
        "max_line_length?:number alphanum_fraction?:number",
        "text=content"},
});

} // namespace

std::span<const Layout> conversationLayouts() noexcept
{
    return kConversationLayouts;
}

std::string_view name(DataKind kind) noexcept
{
    constexpr std::array<std::string_view, 11> kNames{"pairs", "text", "conversation", "preference",
        "labelled answers", "classification", "multiple choice", "question over a passage",
        "summary", "translation", "other"};
    return kNames.at(static_cast<std::size_t>(kind));
}

} // namespace mr
