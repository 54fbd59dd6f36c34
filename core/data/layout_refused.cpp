// Layouts that are known and cannot be trained as they are, or that two people read in two ways.

#include "core/data/layouts.h"

#include <array>

namespace mr {
namespace {

constexpr std::string_view kCounted =
    "whether the places of the answers count from 0 or from 1 is not certain";
constexpr std::string_view kCompared = "answers that are to be compared";
constexpr std::string_view kLabel = "a class may be learned as an answer, or the texts alone";

constexpr auto kRefusedLayouts = std::to_array<Layout>({
    {"glaive v2", "huggingface.co/datasets/glaiveai/glaive-function-calling-v2", DataKind::Other,
        "system chat", "",
        "its conversations are written as one text (\"USER: ... ASSISTANT: ...\"), and training "
        "that would teach the user's words, too. Make each row a list of messages, or train it as "
        "plain text with --map text=chat"},
    {"OpenAssistant (OASST)", "huggingface.co/datasets/OpenAssistant/oasst1", DataKind::Other,
        "message_id:short parent_id?:any text role:short", "",
        "each row is one message of a tree of conversations. Make each path from a question to an "
        "answer one row with a list of messages ({\"messages\": [{\"role\": ..., \"content\": "
        "...}]})"},
    {"CodeContests", "huggingface.co/datasets/deepmind/code_contests", DataKind::Other,
        "name:short description solutions:any", "",
        "solutions is a list of many programs, right ones of several languages. Make a row for "
        "each program to be learned, or take the first with --map prompt=description,"
        "response=solutions[0] (response=solutions.solution[0] where it is an object)"},
    {"hh-rlhf", "huggingface.co/datasets/Anthropic/hh-rlhf", DataKind::Preference,
        "chosen rejected", "", kCompared},
    {"DPO preferences", "huggingface.co/docs/trl/dataset_formats", DataKind::Preference,
        "prompt:any chosen:any rejected:any", "", kCompared},
    {"UltraFeedback, binarized", "huggingface.co/datasets/HuggingFaceH4/ultrafeedback_binarized",
        DataKind::Preference,
        "prompt prompt_id?:short chosen:chat rejected:chat messages:chat score_chosen:number "
        "score_rejected:number",
        "", kCompared},
    {"UltraFeedback", "huggingface.co/datasets/openbmb/UltraFeedback", DataKind::Preference,
        "instruction completions:objects", "",
        "each row holds answers of several models with ratings, to be compared. To train the best "
        "one, write it to a column of its own and say --map prompt=instruction,response=COLUMN"},
    {"PKU-SafeRLHF", "huggingface.co/datasets/PKU-Alignment/PKU-SafeRLHF", DataKind::Preference,
        "prompt response_0 response_1", "",
        "each row holds two answers to be compared. To train one, write the better to a column of "
        "its own and say --map prompt=prompt,response=COLUMN"},
    {"pairwise comparison", "huggingface.co/datasets/lmsys/chatbot_arena_conversations",
        DataKind::Preference, "conversation_a:any conversation_b:any", "",
        "each row holds two conversations to be compared. Keep the better one of each row in one "
        "column and say --map messages=COLUMN"},
    {"Stack Exchange preferences",
        "huggingface.co/datasets/HuggingFaceH4/stack-exchange-preferences", DataKind::Preference,
        "question answers:objects", "",
        "answers is a list to choose from. To train one of them, write it to a column of its own "
        "and say --map prompt=question,response=COLUMN; the first one is answers[0].text"},
    {"SHP", "huggingface.co/datasets/stanfordnlp/SHP", DataKind::Preference,
        "history human_ref_A human_ref_B", "",
        "each row holds two answers to be compared. To train one, say --map prompt=history,"
        "response=human_ref_A"},
    {"HelpSteer", "huggingface.co/datasets/nvidia/HelpSteer2", DataKind::LabelledAnswers,
        "prompt response helpfulness:number correctness:number", "",
        "answers are rated, and poor ones would be trained as good ones. Keep the rows with good "
        "ratings and say --map prompt=prompt,response=response"},
    {"process-labelled steps", "huggingface.co/datasets/trl-lib/prm800k", DataKind::LabelledAnswers,
        "prompt completions:texts labels:list", "",
        "each row holds steps marked right or wrong, which is for reward models. To train right "
        "answers, write them to a text column and say --map prompt=prompt,response=COLUMN"},
    {"WikiQA", "huggingface.co/datasets/microsoft/wiki_qa", DataKind::LabelledAnswers,
        "question_id?:short question document_title? answer label:number", "",
        "most rows hold a sentence that does not answer the question (label 0). Keep the rows "
        "whose label is 1 and say --map prompt=question,response=answer"},
    {"multiple choice (choices)", "a list of choices with the place of the right one",
        DataKind::MultipleChoice, "question choices:list answer:scalar",
        "prompt=question,input=choices[*],response=choices[answer] | "
        "prompt=question,input=choices[*],response=choices[answer-1]",
        kCounted},
    {"multiple choice (options)", "a list of options with the place of the right one",
        DataKind::MultipleChoice, "question options:list answer:scalar",
        "prompt=question,input=options[*],response=options[answer] | "
        "prompt=question,input=options[*],response=options[answer-1]",
        kCounted},
    {"WMT / OPUS translation", "huggingface.co/datasets/wmt/wmt14", DataKind::Translation,
        "id?:scalar translation:object", "", "which language is translated into which is not said"},
    {"IMDb", "huggingface.co/datasets/stanfordnlp/imdb", DataKind::Classification,
        "text label:scalar", "prompt=text,response=label | text=text", kLabel},
    {"AG News, SetFit", "huggingface.co/datasets/SetFit/ag_news", DataKind::Classification,
        "text label:scalar label_text:short", "prompt=text,response=label_text | text=text",
        kLabel},
    {"emotion in texts", "huggingface.co/datasets/dair-ai/emotion", DataKind::Classification,
        "text emotion:short", "prompt=text,response=emotion | text=text", kLabel},
    {"SST-2", "huggingface.co/datasets/stanfordnlp/sst2", DataKind::Classification,
        "idx?:number sentence label:scalar", "prompt=sentence,response=label | text=sentence",
        kLabel},
    {"IMDb reviews (CSV)", "kaggle.com, IMDB dataset of 50K movie reviews",
        DataKind::Classification, "review sentiment:short",
        "prompt=review,response=sentiment | text=review", kLabel},
    {"SMS spam (CSV)", "kaggle.com, SMS spam collection dataset", DataKind::Classification,
        "v1:short v2", "prompt=v2,response=v1 | text=v2", kLabel},
    {"Yelp reviews", "huggingface.co/datasets/Yelp/yelp_review_full", DataKind::Classification,
        "text stars:number", "prompt=text,response=stars | text=text", kLabel},
    {"natural language inference", "huggingface.co/datasets/stanfordnlp/snli",
        DataKind::Classification, "premise hypothesis label:scalar",
        "prompt=premise,input=hypothesis,response=label", "a number that stands for a class"},
    {"named entities (CoNLL)", "huggingface.co/datasets/eriktks/conll2003", DataKind::Other,
        "tokens:list ner_tags:list", "",
        "words are tagged one by one. Write each sentence and its answer as texts and say --map "
        "prompt=COLUMN,response=COLUMN"},
});

} // namespace

std::span<const Layout> refusedLayouts() noexcept
{
    return kRefusedLayouts;
}

} // namespace mr
