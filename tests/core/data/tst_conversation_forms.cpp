// The forms and names in which data files hold conversations.

#include "core/data/chat_case.h"
#include "core/data/conversation.h"
#include "core/data/conversation_forms.h"
#include "support/test_room.h"

namespace mr::test::tst_conversation_forms {

namespace {

Json read(const std::string& messages, const std::string& system = {})
{
    const Result<Json> out = readConversation({messages, {}, system});
    return out.ok() ? Result(out).value() : Json(out.status().message());
}

std::string refusal(const std::string& messages, const std::string& system = {})
{
    const Json out = read(messages, system);
    return out.is_string() ? out.get<std::string>() : std::string();
}

// Roles and contents, one message after the other.
std::string told(const std::string& messages, const std::string& system = {})
{
    const Json out = read(messages, system);
    if (out.is_string())
        return out.get<std::string>();
    std::string text;
    for (const Json& one : out["messages"])
        text += one["role"].get<std::string>() + ":" + joinedText(one["content"]) + "|";
    return text;
}

} // namespace

class TstConversationForms : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void rolesHaveManyNames();
    void turnsAreQuestionsAndAnswers();
    void textsTakeTurns();
    void partsAreText();
    void messagesHoldTheirTextUnderManyKeys();
    void aTreeOfRepliesIsRefused();
    void reasoningHasOneMeaningUnderThreeNames();
    void anOldCallOfAFunctionIsACall();
    void picturesInAMessageAreRefused();
    void twoSystemTextsAreRefusedUnlessEqual();
};

void TstConversationForms::rolesHaveManyNames()
{
    const auto talk = [](const char* asks, const char* answers) {
        return told(Json{{{"role", "System"}, {"content", "s"}}, {{"role", asks}, {"content", "a"}},
            {{"role", answers}, {"content", "b"}}}
                        .dump());
    };

    for (const char* asks : {"user", "User", "USER", "human", "Human", "prompter"})
        for (const char* answers :
            {"assistant", "Chatbot", "CHATBOT", "gpt", "model", "bing", "bot", "chatgpt", "AI"})
            QCOMPARE(talk(asks, answers), std::string("system:s|user:a|assistant:b|"));
    for (const char* result : {"tool", "observation", "function", "Tool", "tool_response"})
        QCOMPARE(std::string(speakerOf(result)), std::string("tool"));
    QVERIFY(contains(talk("user", "narrator"), "\"narrator\""));
}

void TstConversationForms::turnsAreQuestionsAndAnswers()
{
    for (const auto& [asks, answers] : std::initializer_list<std::pair<const char*, const char*>>{
             {"input", "output"}, {"human", "assistant"}, {"user", "assistant"},
             {"query", "response"}, {"question", "answer"}, {"prompt", "response"}}) {
        const Json turns = {{{asks, "a"}, {answers, "b"}}, {{answers, "d"}, {asks, "c"}}};
        QCOMPARE(told(turns.dump()), std::string("user:a|assistant:b|user:c|assistant:d|"));
    }
    QVERIFY(contains(
        refusal(R"([{"input":"a","output":"b","other":"c"}])"), "message 1 of the conversation"));
}

void TstConversationForms::textsTakeTurns()
{
    QCOMPARE(told(R"(["a","b","c","d"])"), std::string("user:a|assistant:b|user:c|assistant:d|"));
    QCOMPARE(told(R"(["a","b","c"])"), std::string("user:a|assistant:b|user:c|"));
    QVERIFY(contains(refusal(R"(["a"])"), "message 1"));
    QVERIFY(contains(refusal(R"(["a",1])"), "message 1"));
}

void TstConversationForms::partsAreText()
{
    QCOMPARE(told(R"([{"role":"user","parts":[{"text":"a"},{"text":"b"}]},)"
                  R"({"role":"model","parts":["c"]}])"),
        std::string("user:ab|assistant:c|"));
    QVERIFY(contains(
        refusal(R"([{"role":"user","parts":[{"inline_data":{"mime_type":"image/png"}}]}])"),
        "has a part that is not text"));
    const Json kept = read(R"([{"role":"user","content":[{"type":"text","value":"a"},)"
                           R"({"type":"text","text":"b"}]}])");
    QCOMPARE(kept["messages"][0]["content"].dump(),
        std::string(R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])"));
}

void TstConversationForms::messagesHoldTheirTextUnderManyKeys()
{
    for (const char* key : {"content", "value", "message", "text"})
        for (const char* role : {"role", "from", "speaker"})
            QCOMPARE(told(Json{{{role, "user"}, {key, "a"}}}.dump()), std::string("user:a|"));
    QVERIFY(
        contains(refusal(R"([{"role":"user","content":"a","value":"b"}])"), "two different texts"));
    QCOMPARE(told(R"([{"role":"user","content":"a","value":null}])"), std::string("user:a|"));
}

void TstConversationForms::aTreeOfRepliesIsRefused()
{
    QVERIFY(contains(
        refusal(R"([{"role":"prompter","text":"a","replies":[{"role":"assistant","text":"b"}]}])"),
        "OpenAssistant"));
}

void TstConversationForms::reasoningHasOneMeaningUnderThreeNames()
{
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
        const Json out =
            read(Json{{{"role", "assistant"}, {"content", "b"}, {name, "because"}}}.dump());
        QCOMPARE(out["messages"][0]["reasoning_content"], Json("because"));
        QCOMPARE(out["messages"][0]["thinking"], Json("because"));
    }
    const Json none = read(R"([{"role":"assistant","content":"b","reasoning_content":null}])");
    QVERIFY(!none["messages"][0].contains("reasoning_content"));
    QVERIFY(contains(refusal(R"([{"role":"assistant","content":"b","thinking":[1]}])"),
        "\"thinking\" that is not text"));
}

void TstConversationForms::anOldCallOfAFunctionIsACall()
{
    const Json out = read(R"([{"role":"assistant","content":null,)"
                          R"("function_call":{"name":"f","arguments":"{\"x\":1}"}}])");
    const Json& message = out["messages"][0];
    QCOMPARE(message["tool_calls"][0]["function"]["name"], Json("f"));
    QCOMPARE(message["tool_calls"][0]["function"]["arguments"]["x"], Json(1));
    QVERIFY(!message.contains("function_call"));
}

void TstConversationForms::picturesInAMessageAreRefused()
{
    QVERIFY(contains(refusal(R"([{"role":"user","content":"a","images":["x.png"]}])"),
        "message 1 of the conversation has \"images\""));
    QCOMPARE(told(R"([{"role":"user","content":"a","images":[]}])"), std::string("user:a|"));
}

void TstConversationForms::twoSystemTextsAreRefusedUnlessEqual()
{
    const std::string given = R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])";
    QCOMPARE(told(given, "s"), std::string("system:s|user:a|"));
    QVERIFY(contains(refusal(given, "other"), "column of its own"));
}

MR_TEST(TstConversationForms)

} // namespace mr::test::tst_conversation_forms

#include "tst_conversation_forms.moc"
