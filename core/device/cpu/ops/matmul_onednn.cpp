#include "core/device/cpu/ops/matmul_onednn.h"

#ifdef MR_HAVE_ONEDNN

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#if DNNL_VERSION_MAJOR != 2
#error                                                                                             \
    "oneDNN 2 is wanted; version 3 describes primitives in another way. Use -DMR_WITH_ONEDNN=OFF."
#endif

namespace mr::cpu {

namespace {

// Shapes of one run are a few dozen; lengths that change every call (generation) are not kept
// for ever.
constexpr std::size_t kMaxPrimitives = 512;

// oneDNN's code generator maps pages for its code and crashes where it gets none. A primitive takes
// 16 MiB of this. The rest is for other threads: the first allocation of each reserves 128 MiB of
// addresses for malloc's arena, and leaves that undone where there is less.
constexpr std::size_t kRoomForPrimitive = 192 << 20;

// Asks the system, not malloc, which may have as much left without asking.
bool hasRoomForPrimitive() noexcept
{
    void* const room = mmap(nullptr, kRoomForPrimitive, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, kRoomForPrimitive);
    return true;
}

// All that makes two tiles the same primitive.
struct Key {
    std::int64_t rows, cols, depth, aRow, aCol, bRow, bCol, cRow;
    std::int64_t type, cType;

    bool operator==(const Key&) const = default;
};

struct PerThread {
    dnnl_memory_t a = nullptr;
    dnnl_memory_t b = nullptr;
    dnnl_memory_t c = nullptr;
    dnnl_memory_t scratchpad = nullptr;
};

dnnl_data_type_t typeOf(std::int64_t type) noexcept
{
    return type == static_cast<std::int64_t>(DType::BF16) ? dnnl_bf16 : dnnl_f32;
}

// A tile goes straight to C unless something is added to it on the way.
bool throughBuffer(const Product& p) noexcept
{
    return p.accumulate || p.bias != nullptr || p.scaleA != nullptr || p.factor != 1.0F;
}

Key keyOf(const Product& p, const Tile& t) noexcept
{
    const bool buffered = throughBuffer(p);
    return {t.rows, t.cols, p.depth, p.aRow, p.aCol, p.bRow, p.bCol, buffered ? t.cols : p.rowOfC(),
        static_cast<std::int64_t>(p.type),
        static_cast<std::int64_t>(buffered ? DType::F32 : p.cType)};
}

std::int64_t floatsFor(std::size_t bytes) noexcept
{
    return static_cast<std::int64_t>((bytes + 63) / 64 * 16);
}

} // namespace

struct OnednnTiles::Entry {
    Key key{};
    dnnl_primitive_t primitive = nullptr;
    std::size_t scratchBytes = 0;
    std::vector<PerThread> threads;

    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    ~Entry()
    {
        for (const PerThread& t : threads)
            for (dnnl_memory_t memory : {t.a, t.b, t.c, t.scratchpad})
                if (memory)
                    dnnl_memory_destroy(memory);
        if (primitive)
            dnnl_primitive_destroy(primitive);
    }

    dnnl_status_t create(dnnl_engine_t engine, int threadCount);
};

struct OnednnTiles::Cache {
    dnnl_engine_t engine = nullptr;
    std::vector<dnnl_stream_t> streams; // one per thread
    std::vector<std::unique_ptr<Entry>> entries;

    ~Cache()
    {
        entries.clear();
        for (dnnl_stream_t stream : streams)
            dnnl_stream_destroy(stream);
        if (engine)
            dnnl_engine_destroy(engine);
    }

    Entry* find(const Key& key) noexcept
    {
        const auto at = std::find_if(
            entries.begin(), entries.end(), [&](const auto& e) { return e->key == key; });
        return at == entries.end() ? nullptr : at->get();
    }
};

namespace {

struct Descriptions {
    dnnl_memory_desc_t a, b, c;
};

dnnl_status_t describe(const Key& k, Descriptions& d) noexcept
{
    const dnnl_dims_t aDims = {k.rows, k.depth};
    const dnnl_dims_t bDims = {k.depth, k.cols};
    const dnnl_dims_t cDims = {k.rows, k.cols};
    const dnnl_dims_t aStrides = {k.aRow, k.aCol};
    const dnnl_dims_t bStrides = {k.bRow, k.bCol};
    const dnnl_dims_t cStrides = {k.cRow, 1};
    if (const auto failed =
            dnnl_memory_desc_init_by_strides(&d.a, 2, aDims, typeOf(k.type), aStrides);
        failed != dnnl_success)
        return failed;
    if (const auto failed =
            dnnl_memory_desc_init_by_strides(&d.b, 2, bDims, typeOf(k.type), bStrides);
        failed != dnnl_success)
        return failed;
    return dnnl_memory_desc_init_by_strides(&d.c, 2, cDims, typeOf(k.cType), cStrides);
}

dnnl_status_t createMatmul(dnnl_engine_t engine, const Descriptions& d, dnnl_primitive_desc_t& out)
{
    dnnl_matmul_desc_t matmul;
    if (const auto failed = dnnl_matmul_desc_init(&matmul, &d.a, &d.b, nullptr, &d.c);
        failed != dnnl_success)
        return failed;
    dnnl_primitive_attr_t attr = nullptr;
    if (const auto failed = dnnl_primitive_attr_create(&attr); failed != dnnl_success)
        return failed;
    dnnl_status_t code = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (code == dnnl_success)
        code = dnnl_primitive_desc_create(&out, &matmul, attr, engine, nullptr);
    dnnl_primitive_attr_destroy(attr);
    return code;
}

dnnl_status_t createMemories(dnnl_engine_t engine, const Descriptions& d,
    const dnnl_memory_desc_t& scratchpad, PerThread& t) noexcept
{
    if (const auto failed = dnnl_memory_create(&t.a, &d.a, engine, DNNL_MEMORY_NONE);
        failed != dnnl_success)
        return failed;
    if (const auto failed = dnnl_memory_create(&t.b, &d.b, engine, DNNL_MEMORY_NONE);
        failed != dnnl_success)
        return failed;
    if (const auto failed = dnnl_memory_create(&t.c, &d.c, engine, DNNL_MEMORY_NONE);
        failed != dnnl_success)
        return failed;
    return dnnl_memory_create(&t.scratchpad, &scratchpad, engine, DNNL_MEMORY_NONE);
}

} // namespace

dnnl_status_t OnednnTiles::Entry::create(dnnl_engine_t engine, int threadCount)
{
    Descriptions d;
    if (const auto failed = describe(key, d); failed != dnnl_success)
        return failed;
    dnnl_primitive_desc_t description = nullptr;
    if (const auto failed = createMatmul(engine, d, description); failed != dnnl_success)
        return failed;
    const dnnl_memory_desc_t scratchpad =
        *dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    scratchBytes = dnnl_memory_desc_get_size(&scratchpad);
    const dnnl_status_t code = dnnl_primitive_create(&primitive, description);
    dnnl_primitive_desc_destroy(description);
    if (code != dnnl_success)
        return code;
    threads.resize(static_cast<std::size_t>(threadCount));
    for (PerThread& t : threads)
        if (const auto failed = createMemories(engine, d, scratchpad, t); failed != dnnl_success)
            return failed;
    return dnnl_success;
}

OnednnTiles::OnednnTiles(int threads)
    : m_cache(std::make_unique<Cache>())
    , m_threads(threads)
{
}

OnednnTiles::~OnednnTiles() = default;

bool OnednnTiles::supports(DType type) noexcept
{
    if (type != DType::BF16)
        return true;
    // Without the instructions oneDNN emulates them, or refuses.
    static const bool native = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) &
                                   static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16)) ==
                               static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
    return native;
}

Result<std::int64_t> OnednnTiles::prepare(const Product& product, const TileGrid& grid)
{
    // oneDNN fixes the number of threads when a primitive is made and when it runs.
    omp_set_num_threads(1);
    const auto refused = [](dnnl_status_t code) {
        return Status::error(ErrorKind::Internal,
            fmt::format("matmul: oneDNN refused a shape, status {}", static_cast<int>(code)));
    };
    if (!m_cache->engine) {
        if (const auto code = dnnl_engine_create(&m_cache->engine, dnnl_cpu, 0);
            code != dnnl_success)
            return refused(code);
        m_cache->streams.resize(static_cast<std::size_t>(m_threads));
        for (dnnl_stream_t& stream : m_cache->streams)
            if (const auto code =
                    dnnl_stream_create(&stream, m_cache->engine, dnnl_stream_default_flags);
                code != dnnl_success)
                return refused(code);
    }
    if (m_cache->entries.size() + 4 > kMaxPrimitives)
        m_cache->entries.clear();
    std::size_t scratchBytes = 0;
    // The four corners are all shapes there are: inner, last row, last column, last of both.
    for (const std::int64_t index :
        {std::int64_t{0}, grid.down - 1, grid.down * (grid.across - 1), grid.count() - 1}) {
        const Key key = keyOf(product, tileAt(product, grid, index));
        Entry* entry = m_cache->find(key);
        if (!entry) {
            if (!hasRoomForPrimitive())
                return Status::error(ErrorKind::OutOfMemory,
                    "matmul: the system has no memory for the code of a matrix product; end other "
                    "programs or raise the limit (`ulimit -v`)");
            auto made = std::make_unique<Entry>();
            made->key = key;
            if (const auto code = made->create(m_cache->engine, m_threads); code != dnnl_success)
                return refused(code);
            entry = made.get();
            m_cache->entries.push_back(std::move(made));
        }
        scratchBytes = std::max(scratchBytes, entry->scratchBytes);
    }
    return floatsFor(scratchBytes) +
           floatsFor(static_cast<std::size_t>(grid.tileRows * grid.tileCols) * sizeof(float));
}

void OnednnTiles::runTile(const Product& p, const Tile& tile, const std::byte* a,
    const std::byte* b, int worker, float* scratch) noexcept
{
    omp_set_num_threads(1);
    Entry* entry = m_cache->find(keyOf(p, tile));
    if (!entry) {
        m_failed.store(true);
        return;
    }
    const auto cSize = static_cast<std::int64_t>(sizeOf(p.cType));
    const bool buffered = throughBuffer(p);
    float* const pad = scratch;
    float* const buffer = scratch + floatsFor(entry->scratchBytes);
    std::byte* const direct = p.c + (tile.row * p.rowOfC() + tile.col) * cSize;
    void* const c = buffered ? static_cast<void*>(buffer) : static_cast<void*>(direct);

    const PerThread& t = entry->threads[static_cast<std::size_t>(worker)];
    // oneDNN only reads a and b; its interface has no const.
    dnnl_memory_set_data_handle(t.a, const_cast<std::byte*>(a));
    dnnl_memory_set_data_handle(t.b, const_cast<std::byte*>(b));
    dnnl_memory_set_data_handle(t.c, c);
    dnnl_memory_set_data_handle(t.scratchpad, pad);
    const std::array<dnnl_exec_arg_t, 4> args{{{DNNL_ARG_SRC, t.a}, {DNNL_ARG_WEIGHTS, t.b},
        {DNNL_ARG_DST, t.c}, {DNNL_ARG_SCRATCHPAD, t.scratchpad}}};
    if (dnnl_primitive_execute(entry->primitive, m_cache->streams[static_cast<std::size_t>(worker)],
            static_cast<int>(args.size()), args.data()) != dnnl_success)
        m_failed.store(true);
    if (buffered)
        storeTile(p, tile, buffer, tile.cols);
}

} // namespace mr::cpu

#else

namespace mr::cpu {

struct OnednnTiles::Entry {
};

struct OnednnTiles::Cache {
};

OnednnTiles::OnednnTiles(int threads)
    : m_threads(threads)
{
}

OnednnTiles::~OnednnTiles() = default;

bool OnednnTiles::supports(DType) noexcept
{
    return false;
}

Result<std::int64_t> OnednnTiles::prepare(const Product&, const TileGrid&)
{
    return std::int64_t{0};
}

void OnednnTiles::runTile(
    const Product&, const Tile&, const std::byte*, const std::byte*, int, float*) noexcept
{
}

} // namespace mr::cpu

#endif
