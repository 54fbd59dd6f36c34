#include "app/net/plugin.h"

#include "app/net/plugin_abi.h"
#include "app/net/qt_transport.h"

extern "C" [[gnu::visibility("default")]] const mr::app::NetPlugin* millraceNetPlugin()
{
    static const mr::app::NetPlugin plugin{mr::app::kNetAbi, mr::app::makeQtTransport};
    return &plugin;
}
