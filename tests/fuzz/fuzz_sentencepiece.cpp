#include "fuzz/fuzz_tokenizers.h"
#include "fuzz/targets.h"

namespace mr::fuzz {

void sentencePiece(std::string_view bytes)
{
    static const FuzzFolder folder;
    useTokenizer(Tokenizer::open(folder.write("tokenizer.model", bytes)), {});
}

} // namespace mr::fuzz
