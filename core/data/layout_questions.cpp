// Layouts that hold a question with a passage, or with the answers to choose from.

#include "core/data/layouts.h"

#include <array>

namespace mr {
namespace {

constexpr auto kQuestionLayouts = std::to_array<Layout>({
    {"SQuAD", "huggingface.co/datasets/rajpurkar/squad", DataKind::Passage,
        "id?:short title?:short context question answers:object",
        "prompt=question,input=context,response=answers.text[0]"},
    {"question over a context", "deepset.ai, question answering as text", DataKind::Passage,
        "question context answer:scalar", "prompt=question,input=context,response=answer"},
    {"BoolQ", "huggingface.co/datasets/google/boolq", DataKind::Passage,
        "question passage answer:truth", "prompt=question,input=passage,response=answer"},
    {"HotpotQA", "huggingface.co/datasets/hotpotqa/hotpot_qa", DataKind::Passage,
        "id?:short question answer:scalar type:short level:short supporting_facts:object "
        "context:object",
        "",
        "the passages lie in a table of sentences (context), which no role can take as it is; "
        "join them to a text column and say --map prompt=question,input=CONTEXT,"
        "response=answer, or train without them with --map prompt=question,response=answer"},
    {"TriviaQA", "huggingface.co/datasets/mandarjoshi/trivia_qa", DataKind::Pairs,
        "question question_id?:short question_source?:short answer:object entity_pages?:any "
        "search_results?:any",
        "prompt=question,response=answer.value"},
    {"Natural Questions (open)", "huggingface.co/datasets/google-research-datasets/nq_open",
        DataKind::Pairs, "question answer:texts", "prompt=question,response=answer[0]"},
    {"PubMedQA", "huggingface.co/datasets/qiaojin/PubMedQA", DataKind::Passage,
        "pubid?:scalar question context:object long_answer final_decision?:short",
        "prompt=question,response=long_answer | prompt=question,response=final_decision",
        "both answers may be meant, the long one and the decision"},
    {"MMLU", "huggingface.co/datasets/cais/mmlu", DataKind::MultipleChoice,
        "question subject?:short choices:list answer:place",
        "prompt=question,input=choices[*],response=choices[answer]"},
    {"MMLU-Pro", "huggingface.co/datasets/TIGER-Lab/MMLU-Pro", DataKind::MultipleChoice,
        "question_id?:scalar question options:list answer:letter answer_index:number cot_content? "
        "category?:short src?:short",
        "prompt=question,input=options[*],response=options[answer]"},
    {"ARC", "huggingface.co/datasets/allenai/ai2_arc", DataKind::MultipleChoice,
        "id?:short question choices:object answerKey:scalar question_concept?:short",
        "prompt=question,input=choices.text[*],response=choices.text[answerKey]"},
    {"OpenBookQA", "huggingface.co/datasets/allenai/openbookqa", DataKind::MultipleChoice,
        "id?:short question_stem choices:object answerKey:scalar",
        "prompt=question_stem,input=choices.text[*],response=choices.text[answerKey]"},
    {"PIQA", "huggingface.co/datasets/ybisk/piqa", DataKind::MultipleChoice,
        "goal sol1 sol2 label:place", "prompt=goal,response=sol1+sol2[label]"},
    {"HellaSwag", "huggingface.co/datasets/Rowan/hellaswag", DataKind::MultipleChoice,
        "ind?:number activity_label?:short ctx endings:list source_id?:short split_type?:short "
        "label:place",
        "prompt=ctx,response=endings[label]"},
    {"COPA", "huggingface.co/datasets/aps/super_glue", DataKind::MultipleChoice,
        "premise choice1 choice2 question:short idx?:number label:place",
        "prompt=premise&question,input=choice1+choice2[*],response=choice1+choice2[label]"},
    {"WinoGrande", "huggingface.co/datasets/allenai/winogrande", DataKind::MultipleChoice,
        "qID?:short sentence option1 option2 answer:upto2",
        "prompt=sentence,input=option1+option2[*],response=option1+option2[answer-1]"},
    {"RACE", "huggingface.co/datasets/ehovy/race", DataKind::MultipleChoice,
        "example_id?:short article question options:list answer:letter",
        "prompt=article&question,input=options[*],response=options[answer]"},
    {"LogiQA", "huggingface.co/datasets/lucasmccabe/logiqa", DataKind::MultipleChoice,
        "context query options:list correct_option:place",
        "prompt=context&query,input=options[*],response=options[correct_option]"},
    {"SocialIQA", "huggingface.co/datasets/allenai/social_i_qa", DataKind::MultipleChoice,
        "context question answerA answerB answerC label:upto3",
        "prompt=context&question,input=answerA+answerB+answerC[*],"
        "response=answerA+answerB+answerC[label-1]"},
    {"SciQ", "huggingface.co/datasets/allenai/sciq", DataKind::Passage,
        "question distractor1 distractor2 distractor3 correct_answer support?",
        "prompt=question,response=correct_answer | "
        "prompt=question,input=support,response=correct_answer",
        "the supporting text may stand before the answer or be left out"},
    {"MedMCQA", "huggingface.co/datasets/openlifescienceai/medmcqa", DataKind::MultipleChoice,
        "id?:short question opa opb opc opd cop:scalar choice_type?:short exp? subject_name?:short "
        "topic_name?",
        "prompt=question,input=opa+opb+opc+opd[*],response=opa+opb+opc+opd[cop] | "
        "prompt=question,input=opa+opb+opc+opd[*],response=opa+opb+opc+opd[cop-1]",
        "cop counts the right option from 0 in some copies and from 1 in others"},
    {"JCommonsenseQA", "huggingface.co/datasets/leemeng/jcommonsenseqa-v1.1",
        DataKind::MultipleChoice,
        "q_id?:scalar question choice0 choice1 choice2 choice3 choice4 label:place",
        "prompt=question,input=choice0+choice1+choice2+choice3+choice4[*],"
        "response=choice0+choice1+choice2+choice3+choice4[label]"},
    {"AQuA-RAT", "huggingface.co/datasets/deepmind/aqua_rat", DataKind::MultipleChoice,
        "question options:list rationale correct:short",
        "prompt=question&options[*],response=rationale"},
});

} // namespace

std::span<const Layout> questionLayouts() noexcept
{
    return kQuestionLayouts;
}

} // namespace mr
