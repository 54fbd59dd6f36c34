// Layouts that hold a question and its answer, a text and its summary, or two languages.

#include "core/data/layouts.h"

#include <array>

namespace mr {
namespace {

constexpr auto kPairLayouts = std::to_array<Layout>({
    {"Alpaca", "huggingface.co/datasets/tatsu-lab/alpaca", DataKind::Pairs,
        "instruction input? output system? history?:any",
        "prompt=instruction,input=input,response=output,system=system,history=history"},
    {"Dolly", "huggingface.co/datasets/databricks/databricks-dolly-15k", DataKind::Pairs,
        "instruction context? response category?:short",
        "prompt=instruction,input=context,response=response"},
    {"question and answer (GSM8K)", "huggingface.co/datasets/openai/gsm8k", DataKind::Pairs,
        "question answer:scalar", "prompt=question,response=answer"},
    {"OpenOrca", "huggingface.co/datasets/Open-Orca/OpenOrca", DataKind::Pairs,
        "id?:short system_prompt question response",
        "prompt=question,response=response,system=system_prompt"},
    {"FLAN", "huggingface.co/datasets/Open-Orca/FLAN", DataKind::Pairs,
        "inputs targets:scalar _template_idx?:number _task_source?:short _task_name?:short "
        "_template_type?:short template_type?:short task?:short task_source?:short "
        "task_name?:short",
        "prompt=inputs,response=targets"},
    {"P3 (T0)", "huggingface.co/datasets/bigscience/P3", DataKind::Pairs,
        "inputs_pretokenized targets_pretokenized inputs?:list targets?:list answer_choices?:list",
        "prompt=inputs_pretokenized,response=targets_pretokenized"},
    {"T5 text-to-text", "huggingface.co/docs/transformers/tasks/translation", DataKind::Pairs,
        "input_text target_text prefix?:short", "prompt=input_text,response=target_text"},
    {"TRL prompt-completion", "huggingface.co/docs/trl/dataset_formats", DataKind::Pairs,
        "prompt completion:scalar", "prompt=prompt,response=completion"},
    {"KTO", "huggingface.co/docs/trl/dataset_formats", DataKind::LabelledAnswers,
        "prompt completion label:truth", "prompt=prompt,response=completion"},
    {"TRL conversational prompt-completion", "huggingface.co/docs/trl/dataset_formats",
        DataKind::Conversation, "prompt:chat completion:chat tools?:any",
        "prompt=prompt,response=completion,tools=tools"},
    {"query and response", "swift.readthedocs.io, custom dataset", DataKind::Pairs,
        "query response system? history?:any",
        "prompt=query,response=response,system=system,history=history"},
    {"q and a", "rows of one letter for each side", DataKind::Pairs, "q a:scalar",
        "prompt=q,response=a"},
    {"LaMini-instruction", "huggingface.co/datasets/MBZUAI/LaMini-instruction", DataKind::Pairs,
        "instruction response instruction_source?:short", "prompt=instruction,response=response"},
    {"No Robots (prompt and messages)", "huggingface.co/datasets/HuggingFaceH4/no_robots",
        DataKind::Conversation, "prompt_id:short messages:chat category:short",
        "messages=messages"},
    {"Magicoder OSS-Instruct", "huggingface.co/datasets/ise-uiuc/Magicoder-OSS-Instruct-75K",
        DataKind::Pairs,
        "lang:short raw_index:number index:number seed openai_fingerprint?:short problem solution",
        "prompt=problem,response=solution"},
    {"MetaMathQA", "huggingface.co/datasets/meta-math/MetaMathQA", DataKind::Pairs,
        "query response type:short original_question", "prompt=query,response=response"},
    {"NuminaMath", "huggingface.co/datasets/AI-MO/NuminaMath-CoT", DataKind::Pairs,
        "source:short problem solution problem_type?:short question_type?:short",
        "prompt=problem,response=solution"},
    {"MATH", "huggingface.co/datasets/hendrycks/competition_math", DataKind::Pairs,
        "problem level?:short type?:short subject?:short solution unique_id?:short",
        "prompt=problem,response=solution"},
    {"OpenMathInstruct-1", "huggingface.co/datasets/nvidia/OpenMathInstruct-1", DataKind::Pairs,
        "question generated_solution expected_answer:scalar predicted_answer:scalar error_message "
        "dataset?:short generation_type?:short",
        "prompt=question,response=generated_solution"},
    {"OpenMathInstruct-2", "huggingface.co/datasets/nvidia/OpenMathInstruct-2", DataKind::Pairs,
        "problem generated_solution expected_answer?:scalar problem_source?:short",
        "prompt=problem,response=generated_solution"},
    {"MathInstruct", "huggingface.co/datasets/TIGER-Lab/MathInstruct", DataKind::Pairs,
        "source?:short instruction output", "prompt=instruction,response=output"},
    {"xLAM function calling", "huggingface.co/datasets/Salesforce/xlam-function-calling-60k",
        DataKind::Pairs, "id?:number query tools answers",
        "prompt=query,input=tools,response=answers"},
    {"MBPP", "huggingface.co/datasets/google-research-datasets/mbpp", DataKind::Pairs,
        "task_id:number text code test_list:list test_setup_code? challenge_test_list?:list",
        "prompt=text,response=code"},
    {"MBPP, sanitized", "huggingface.co/datasets/google-research-datasets/mbpp", DataKind::Pairs,
        "source_file?:short task_id?:number prompt code test_imports?:list test_list:list",
        "prompt=prompt,response=code"},
    {"HumanEval", "huggingface.co/datasets/openai/openai_humaneval", DataKind::Pairs,
        "task_id?:short prompt canonical_solution test entry_point:short",
        "prompt=prompt,response=canonical_solution"},
    {"XSum", "huggingface.co/datasets/EdinburghNLP/xsum", DataKind::Summary,
        "document summary id?:scalar", "prompt=document,response=summary"},
    {"CNN/DailyMail", "huggingface.co/datasets/abisee/cnn_dailymail", DataKind::Summary,
        "article highlights id?:scalar", "prompt=article,response=highlights"},
    {"SAMSum", "huggingface.co/datasets/knkarthick/samsum", DataKind::Summary,
        "id?:scalar dialogue summary", "prompt=dialogue,response=summary"},
    {"DialogSum", "huggingface.co/datasets/knkarthick/dialogsum", DataKind::Summary,
        "id?:scalar dialogue summary topic?:short", "prompt=dialogue,response=summary"},
    {"text and summary", "huggingface.co/datasets/FiscalNote/billsum", DataKind::Summary,
        "text summary title?:short", "prompt=text,response=summary"},
    {"arXiv summarization", "huggingface.co/datasets/ccdv/arxiv-summarization", DataKind::Summary,
        "article abstract", "prompt=article,response=abstract"},
    {"BIG-Bench", "huggingface.co/datasets/maveriq/bigbenchhard", DataKind::Pairs,
        "input target:scalar", "prompt=input,response=target"},
    {"source and target", "pytorch.org/torchtune, instruct datasets", DataKind::Pairs,
        "source target", "prompt=source,response=target"},
});

} // namespace

std::span<const Layout> pairLayouts() noexcept
{
    return kPairLayouts;
}

} // namespace mr
