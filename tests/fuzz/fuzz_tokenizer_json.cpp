#include "fuzz/fuzz_tokenizers.h"
#include "fuzz/targets.h"

namespace mr::fuzz {

void tokenizerJson(std::string_view bytes)
{
    static const FuzzFolder folder;
    const auto parts = cutInput(bytes, 3);
    const auto file = folder.write("tokenizer.json", parts[0]);
    folder.remove("tokenizer_config.json");
    if (!parts[1].empty())
        folder.write("tokenizer_config.json", parts[1]);
    useTokenizer(Tokenizer::open(file), parts[2]);
}

} // namespace mr::fuzz
