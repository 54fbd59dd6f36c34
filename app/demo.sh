# shellcheck shell=bash disable=SC2154
# The demo without a window: the bundled sample before and after fine-tuning. Sourced by app/run,
# which sets `root` and `bin`. The settings are those of the workstation's sample (ui::sampleSpec).

# Step lines one in ten; everything else as it comes.
every_tenth_step() {
    local line
    while IFS= read -r line; do
        if [[ ! $line =~ ^step\ +([0-9]+)\ +loss ]] || [ $((BASH_REMATCH[1] % 10)) -eq 0 ]; then
            printf '%s\n' "$line"
        fi
    done
}

# answers MODEL: how the model does on questions it is not trained on, and three of them in full.
answers() {
    local line question
    "$bin/millrace" eval --model "$1" --data "$root/resources/sample/eval.jsonl" --answers 100 |
        sed 's/^/      /'
    while IFS= read -r line; do
        question=$(sed -n 's/^{"question": "\([^"\\]*\)", .*/\1/p' <<<"$line")
        [ -n "$question" ] || continue
        "$bin/millrace" generate --model "$1" --prompt "$question"$'\n' --greedy --max-tokens 32 |
            sed 's/^/      | /'
    done < <(head -n 3 "$root/resources/sample/eval.jsonl")
}

run_demo() {
    local sample=$root/resources/sample log model
    [ -f "$sample/model/config.json" ] || stop "the sample is not here: no $sample/model/config.json"
    say "      100 held-out questions before fine-tuning, the first three in full:"
    answers "$sample/model"
    say "      fine-tuning (every tenth step is shown; Ctrl+C saves and stops)"
    log=$(mktemp "${TMPDIR:-/tmp}/millrace-demo.XXXXXX")
    "$bin/millrace" train --name sample --model "$sample/model" --data "$sample/train.jsonl" \
        --eval-data "$sample/eval.jsonl" --eval-answers 40 --lr 5e-4 2>&1 | tee "$log" |
        every_tenth_step | sed 's/^/      /'
    model=$(sed -n 's/^done: the model is in //p' "$log")
    rm -f "$log"
    [ -n "$model" ] || stop "the run did not end; \`$bin/millrace runs\` shows where it is"
    say "      the same questions after it:"
    answers "$model"
    say "      the history (\`$bin/millrace runs\`):"
    "$bin/millrace" runs | sed 's/^/      /'
    finish "the improved model is in $model"
}
