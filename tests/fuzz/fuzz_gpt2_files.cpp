#include "fuzz/fuzz_tokenizers.h"
#include "fuzz/targets.h"

namespace mr::fuzz {

void gpt2Files(std::string_view bytes)
{
    static const FuzzFolder folder;
    const auto parts = cutInput(bytes, 3);
    const auto file = folder.write("vocab.json", parts[0]);
    folder.write("merges.txt", parts[1]);
    folder.remove("tokenizer_config.json");
    if (!parts[2].empty())
        folder.write("tokenizer_config.json", parts[2]);
    useTokenizer(Tokenizer::open(file), {});
}

} // namespace mr::fuzz
