#include "app/cli/local_name.h"

#include <millrace/local_models.h>

#include <string>

namespace mr::app {

void takeLocalName(CLI::Option& option)
{
    option.transform(CLI::Validator(
        [](std::string& text) {
            Result<std::string> path = localModelPath(text, usualModelPlaces());
            if (!path.ok())
                return path.status().message();
            text = path.value();
            return std::string();
        },
        "", "model"));
}

} // namespace mr::app
