// How a chat template reads a conversation, found out by rendering small ones.
//
// Templates read content as a text, as a list of parts or as either, and a call's arguments as an
// object or as JSON in a text. Other forms they write as Python's repr, leave out or refuse. Some
// write the prompt for the next answer behind every answer although nobody asked.
//
// Threads  Functions of their arguments.
// Errors   None: a template that refuses all of the small conversations is taken as the usual one.

#pragma once

#include "core/data/chat_template.h"

namespace mr {

struct ChatHabits {
    bool readsTexts = true;
    bool readsParts = false;
    bool readsArgumentTexts = false; // and not objects
    // Reasoning is read as a part of content ({"type": "thinking", ...}) and under no other name.
    bool readsThoughtParts = false;
    // A thought within the text of an answer ("<think>...</think>") is written as it is, beside the
    // template's own marks or without them, so it has to come under its name.
    bool keepsInnerThoughts = false;
    // Text that the template writes unasked behind the end of the last answer.
    std::string unasked;
    // Text behind a question up to where the model goes on.
    std::string asking;
    // Text that the model writes from there up to the words of its answer.
    std::string opening;
    // There is something unasked, and where the answer ends cannot be told.
    bool endIsUnclear = false;
};

// `tokens`: special tokens of the model, any of which may end an answer.
ChatHabits findHabits(const RenderChat& render, const std::map<std::string, std::string>& tokens);

// Bytes that both begin with.
std::size_t commonPrefix(std::string_view a, std::string_view b) noexcept;

// The conversation as the template reads it.
nlohmann::ordered_json adapted(nlohmann::ordered_json variables, const ChatHabits& habits);

} // namespace mr
