/* A fake libnvidia-ml.so.1: answers what a text file says, so that the real pynvml can be driven without a device.
 *
 * FAKE_NVML names the file. It is read again at every call, so a test changes the machine by replacing it. A line is
 *
 *     KEY VALUE                  gpu1.busy 97      all.power_mw 420000      pairs.path 30      pair0-1.read 4
 *
 *  - "gpu1." speaks of one device, "gpu1.mig0." of one MIG instance, "all." of every device not named itself;
 *  - a key that is nowhere is answered by NVML_ERROR_NOT_SUPPORTED;
 *  - "now SECTION" puts the lines "SECTION:KEY VALUE" in force before the others;
 *  - a value "97 | 97 | 0" is a script: each call that reads the key in one process takes the next, the last one stays;
 *  - "fail.FUNCTION CODE", "gpu1.fail.FUNCTION CODE" make a function return an NVML code (a script too: "0 | 15"),
 *    "hang.FUNCTION 1" makes it never return, "gpu1.lost 1" makes all of a device's functions but those of its
 *    identity return NVML_ERROR_GPU_IS_LOST;
 *  - "gpu0.compute PID:BYTES:GPU_INSTANCE,…" and "gpu0.graphics …" list processes; BYTES "?" is not told.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Code;
typedef void *Handle;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
    TIMED_OUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25
};
enum { TEXT = 2048, DEVICES = 64, NO_INSTANCE = -1 };

/* ---- the file ---- */

static int find(const char *key, char *value) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[TEXT];
    size_t length = strlen(key);
    int found = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) || line[length] != ' ') continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, TEXT, "%s", line + length + 1);
        found = 1;
    }
    fclose(file);
    return found;
}

static int readable(void) {
    const char *path = getenv("FAKE_NVML");
    return path && access(path, R_OK) == 0;
}

/* Replaces a script by the entry that is due at this call. */
static void take_step(const char *key, char *value) {
    static struct { char key[128]; int calls; } counters[512];
    int slot = 0, step;
    char *entry = value, *bar;
    if (!strchr(value, '|')) return;
    while (slot < 511 && counters[slot].key[0] && strcmp(counters[slot].key, key)) slot++;
    snprintf(counters[slot].key, sizeof counters[slot].key, "%s", key);
    step = counters[slot].calls++;
    while (step-- > 0 && (bar = strchr(entry, '|'))) entry = bar + 1;
    if ((bar = strchr(entry, '|'))) *bar = 0;
    while (*entry == ' ') entry++;
    memmove(value, entry, strlen(entry) + 1);
}

static int plain(const char *key, char *value) {
    if (!find(key, value)) return 0;
    take_step(key, value);
    return 1;
}

/* Looks a key up in the section that is in force, then outside sections. */
static int lookup(const char *key, char *value) {
    char now[TEXT], full[TEXT + 64];
    if (find("now", now)) {
        snprintf(full, sizeof full, "%s:%s", now, key);
        if (plain(full, value)) return 1;
    }
    return plain(key, value);
}

/* ---- handles: device i is i + 1, its MIG instance j is (i + 1) * 4096 + j + 1 ---- */

static int device_of(Handle handle) {
    intptr_t number = (intptr_t)handle;
    return (int)(number >= 4096 ? number / 4096 - 1 : number - 1);
}

static int slot_of(Handle handle) {
    intptr_t number = (intptr_t)handle;
    return number >= 4096 ? (int)(number % 4096 - 1) : NO_INSTANCE;
}

/* Looks up what is said of one device, then of all. */
static int about(Handle handle, const char *field, char *value) {
    char one[128], all[128], now[TEXT], full[TEXT + 256];
    int device = device_of(handle), slot = slot_of(handle);
    if (slot != NO_INSTANCE) {
        snprintf(one, sizeof one, "gpu%d.mig%d.%s", device, slot, field);
        return lookup(one, value);
    }
    snprintf(one, sizeof one, "gpu%d.%s", device, field);
    snprintf(all, sizeof all, "all.%s", field);
    if (find("now", now)) {
        snprintf(full, sizeof full, "%s:%s", now, one);
        if (plain(full, value)) return 1;
        snprintf(full, sizeof full, "%s:%s", now, all);
        if (plain(full, value)) return 1;
    }
    return plain(one, value) || plain(all, value);
}

/* ---- faults ---- */

static Code fault(const char *function) {
    char key[128], value[TEXT];
    if (!readable()) return DRIVER_NOT_LOADED;
    snprintf(key, sizeof key, "hang.%s", function);
    while (find(key, value)) pause();
    snprintf(key, sizeof key, "fail.%s", function);
    return lookup(key, value) ? atoi(value) : OK;
}

static Code device_fault(const char *function, Handle handle, int identity) {
    char field[128], value[TEXT];
    Code code = fault(function);
    if (code) return code;
    snprintf(field, sizeof field, "fail.%s", function);
    if (about(handle, field, value) && atoi(value)) return atoi(value);
    return !identity && about(handle, "lost", value) && atoi(value) ? GPU_IS_LOST : OK;
}

/* ---- answers ---- */

static Code text_of(const char *function, Handle handle, const char *field, char *out, u32 size) {
    char value[TEXT];
    Code code = device_fault(function, handle, 1);
    if (code) return code;
    if (!about(handle, field, value)) return NOT_SUPPORTED;
    snprintf(out, size, "%s", value);
    return OK;
}

static Code number_of(const char *function, Handle handle, const char *field, u64 *out) {
    char value[TEXT];
    Code code = device_fault(function, handle, 0);
    if (code) return code;
    if (!about(handle, field, value)) return NOT_SUPPORTED;
    *out = strtoull(value, NULL, 0);
    return OK;
}

static Code u32_of(const char *function, Handle handle, const char *field, u32 *out) {
    u64 number = 0;
    Code code = number_of(function, handle, field, &number);
    if (!code) *out = (u32)number;
    return code;
}

#define NUMBER(function, field) Code function(Handle handle, u32 *out) { return u32_of(#function, handle, field, out); }

/* ---- library and system ---- */

Code nvmlInitWithFlags(u32 flags) { (void)flags; return fault("nvmlInitWithFlags"); }
Code nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Code nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(Code code) {
    switch (code) {
        case NOT_SUPPORTED: return "Not Supported";
        case DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case GPU_IS_LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}

static Code system_text(const char *function, const char *key, char *out, u32 size) {
    char value[TEXT];
    Code code = fault(function);
    if (code) return code;
    if (!lookup(key, value)) return NOT_SUPPORTED;
    snprintf(out, size, "%s", value);
    return OK;
}

Code nvmlSystemGetDriverVersion(char *out, u32 size) {
    return system_text("nvmlSystemGetDriverVersion", "driver", out, size);
}

Code nvmlSystemGetCudaDriverVersion_v2(int *out) {
    char value[TEXT];
    Code code = system_text("nvmlSystemGetCudaDriverVersion_v2", "cuda_driver", value, TEXT);
    if (!code) *out = atoi(value);
    return code;
}

Code nvmlDeviceGetCount_v2(u32 *out) {
    char value[TEXT];
    Code code = system_text("nvmlDeviceGetCount_v2", "count", value, TEXT);
    if (!code) *out = (u32)atoi(value);
    return code;
}

Code nvmlDeviceGetHandleByIndex_v2(u32 index, Handle *out) {
    u32 count = 0;
    Code code = nvmlDeviceGetCount_v2(&count);
    if (code) return code;
    if (index >= count) return INVALID_ARGUMENT;
    *out = (Handle)(intptr_t)(index + 1);
    return device_fault("nvmlDeviceGetHandleByIndex_v2", *out, 1);
}

/* ---- what a device is ---- */

Code nvmlDeviceGetIndex(Handle handle, u32 *out) { *out = (u32)device_of(handle); return OK; }
Code nvmlDeviceGetUUID(Handle handle, char *out, u32 size) { return text_of("nvmlDeviceGetUUID", handle, "uuid", out, size); }
Code nvmlDeviceGetName(Handle handle, char *out, u32 size) { return text_of("nvmlDeviceGetName", handle, "name", out, size); }

typedef struct { char legacy_id[16]; u32 domain, bus, device, pci_id, subsystem; char id[32]; } PciInfo;

Code nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo *out) {
    memset(out, 0, sizeof *out);
    return text_of("nvmlDeviceGetPciInfo_v3", handle, "bus_id", out->id, sizeof out->id);
}

Code nvmlDeviceGetCudaComputeCapability(Handle handle, int *major, int *minor) {
    char value[TEXT];
    Code code = text_of("nvmlDeviceGetCudaComputeCapability", handle, "capability", value, TEXT);
    if (!code && sscanf(value, "%d.%d", major, minor) != 2) return NOT_SUPPORTED;
    return code;
}

Code nvmlDeviceGetMigMode(Handle handle, u32 *current, u32 *pending) {
    Code code = u32_of("nvmlDeviceGetMigMode", handle, "mig", current);
    *pending = *current;
    return code;
}

Code nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, u32 index, Handle *out) {
    char value[TEXT];
    *out = (Handle)(((intptr_t)handle) * 4096 + index + 1);
    return about(*out, "uuid", value) ? device_fault("nvmlDeviceGetMigDeviceHandleByIndex", handle, 0) : NOT_FOUND;
}

NUMBER(nvmlDeviceGetMaxMigDeviceCount, "mig_slots")
NUMBER(nvmlDeviceGetGpuInstanceId, "gpu_instance")
NUMBER(nvmlDeviceGetDisplayActive, "display")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")

/* ---- what it does ---- */

typedef struct { u64 total, free, used; } Memory;
typedef struct { u32 version; u64 total, reserved, free, used; } Memory2;
typedef struct { u32 busy, memory_busy; } Utilization;

Code nvmlDeviceGetMemoryInfo(Handle handle, Memory *out) {
    Code code = number_of("nvmlDeviceGetMemoryInfo", handle, "memory_total", &out->total);
    if (!code) code = number_of("nvmlDeviceGetMemoryInfo", handle, "memory_used", &out->used);
    out->free = out->total - out->used;
    return code;
}

Code nvmlDeviceGetMemoryInfo_v2(Handle handle, Memory2 *out) {
    Memory simple = {0, 0, 0};
    Code code = device_fault("nvmlDeviceGetMemoryInfo_v2", handle, 0);
    if (code) return code;
    if (out->version != (sizeof *out | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    code = nvmlDeviceGetMemoryInfo(handle, &simple);
    out->total = simple.total;
    out->used = simple.used;
    return code;
}

Code nvmlDeviceGetUtilizationRates(Handle handle, Utilization *out) {
    Code code = u32_of("nvmlDeviceGetUtilizationRates", handle, "busy", &out->busy);
    return code ? code : u32_of("nvmlDeviceGetUtilizationRates", handle, "memory_busy", &out->memory_busy);
}

Code nvmlDeviceGetClockInfo(Handle handle, int clock, u32 *out) {
    return u32_of("nvmlDeviceGetClockInfo", handle, clock == 2 ? "memory_mhz" : "sm_mhz", out);
}

Code nvmlDeviceGetMaxClockInfo(Handle handle, int clock, u32 *out) {
    return u32_of("nvmlDeviceGetMaxClockInfo", handle, clock == 2 ? "memory_mhz_max" : "sm_mhz_max", out);
}

Code nvmlDeviceGetTemperature(Handle handle, int sensor, u32 *out) {
    (void)sensor;
    return u32_of("nvmlDeviceGetTemperature", handle, "temperature", out);
}

Code nvmlDeviceGetCurrentClocksEventReasons(Handle handle, u64 *out) {
    return number_of("nvmlDeviceGetCurrentClocksEventReasons", handle, "event_reasons", out);
}

Code nvmlDeviceGetCurrentClocksThrottleReasons(Handle handle, u64 *out) {
    return number_of("nvmlDeviceGetCurrentClocksThrottleReasons", handle, "event_reasons", out);
}

/* "pcie_kb_s", for each direction. */
Code nvmlDeviceGetPcieThroughput(Handle handle, int counter, u32 *out) {
    return u32_of("nvmlDeviceGetPcieThroughput", handle, counter ? "pcie_rx_kb_s" : "pcie_tx_kb_s", out);
}

/* The performance monitor: "gpm 1" where there is one, "gpm2 41.5" for the value of metric 2. */
typedef struct { u32 version, supported; } GpmSupport;
typedef struct { u32 metric; Code code; double value; const char *names[3]; } GpmMetric;
typedef struct { u32 version, count; Handle first, second; GpmMetric metrics[1]; } GpmRequest;

Code nvmlGpmQueryDeviceSupport(Handle handle, GpmSupport *out) {
    return u32_of("nvmlGpmQueryDeviceSupport", handle, "gpm", &out->supported);
}

Code nvmlGpmSampleAlloc(Handle *out) {
    *out = calloc(1, sizeof(Handle));
    return fault("nvmlGpmSampleAlloc");
}

Code nvmlGpmSampleFree(Handle sample) { free(sample); return OK; }

Code nvmlGpmSampleGet(Handle handle, Handle sample) {
    *(Handle *)sample = handle;
    return device_fault("nvmlGpmSampleGet", handle, 0);
}

Code nvmlGpmMetricsGet(GpmRequest *request) {
    Handle handle = *(Handle *)request->second;
    Code code = device_fault("nvmlGpmMetricsGet", handle, 0);
    if (code) return code;
    if (request->version != 1 || *(Handle *)request->first != handle) return INVALID_ARGUMENT;
    for (u32 i = 0; i < request->count; i++) {
        char field[64], value[TEXT];
        snprintf(field, sizeof field, "gpm%u", request->metrics[i].metric);
        request->metrics[i].code = about(handle, field, value) ? OK : NOT_SUPPORTED;
        request->metrics[i].value = request->metrics[i].code ? 0 : strtod(value, NULL);
    }
    return OK;
}

NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")

/* ---- health ---- */

Code nvmlDeviceGetTotalEccErrors(Handle handle, int kind, int counter, u64 *out) {
    (void)counter;
    return number_of("nvmlDeviceGetTotalEccErrors", handle, kind == 1 ? "ecc_uncorrected" : "ecc_corrected", out);
}

Code nvmlDeviceGetRemappedRows(Handle handle, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    Code code = u32_of("nvmlDeviceGetRemappedRows", handle, "remap_pending", pending);
    *corrected = *uncorrected = 0;
    u32_of("nvmlDeviceGetRemappedRows", handle, "remapped_rows", uncorrected);
    return code ? code : u32_of("nvmlDeviceGetRemappedRows", handle, "remap_failed", failed);
}

NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pages_pending")

typedef struct { u32 field, scope; int64_t time, latency; u32 type; Code code; u64 value; } FieldValue;

Code nvmlDeviceGetFieldValues(Handle handle, int count, FieldValue *values) {
    Code code = device_fault("nvmlDeviceGetFieldValues", handle, 0);
    for (int i = 0; !code && i < count; i++) {
        char field[64], value[TEXT];
        snprintf(field, sizeof field, "field%u", values[i].field);
        values[i].code = about(handle, field, value) ? OK : NOT_SUPPORTED;
        values[i].type = 1;
        values[i].value = values[i].code ? 0 : strtoull(value, NULL, 0);
    }
    return code;
}

typedef struct { u32 version; unsigned char cluster[16]; Code status; u32 clique, state, health; } FabricInfo;

Code nvmlDeviceGetGpuFabricInfoV(Handle handle, FabricInfo *out) {
    Code code = u32_of("nvmlDeviceGetGpuFabricInfoV", handle, "fabric_state", &out->state);
    u32 status = 0;
    if (code) return code;
    u32_of("nvmlDeviceGetGpuFabricInfoV", handle, "fabric_status", &status);
    out->status = (Code)status;
    if (u32_of("nvmlDeviceGetGpuFabricInfoV", handle, "fabric_health", &out->health)) out->health = 0;
    return OK;
}

/* ---- processes ---- */

typedef struct { u32 pid; u64 bytes; u32 gpu_instance, compute_instance; } Process;

static Code processes_of(const char *function, Handle handle, const char *field, u32 *count, Process *out) {
    char value[TEXT] = "", *rest = value, *entry;
    u32 room = *count;
    Code code = device_fault(function, handle, 0);
    if (code) return code;
    if (!about(handle, field, value)) return NOT_SUPPORTED;
    *count = 0;
    while ((entry = strsep(&rest, ","))) {
        char bytes[32] = "?";
        Process process = {0, ~0ULL, ~0u, ~0u};
        if (sscanf(entry, "%u:%31[^:]:%u", &process.pid, bytes, &process.gpu_instance) < 1) continue;
        if (bytes[0] != '?') process.bytes = strtoull(bytes, NULL, 0);
        if (out && *count < room) out[*count] = process;
        ++*count;
    }
    return *count > room ? INSUFFICIENT_SIZE : OK;
}

Code nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, u32 *count, Process *out) {
    return processes_of("nvmlDeviceGetComputeRunningProcesses_v3", handle, "compute", count, out);
}

Code nvmlDeviceGetGraphicsRunningProcesses_v3(Handle handle, u32 *count, Process *out) {
    return processes_of("nvmlDeviceGetGraphicsRunningProcesses_v3", handle, "graphics", count, out);
}

/* ---- what connects devices ---- */

static Code pair_of(const char *function, Handle first, Handle second, const char *field, u32 *out) {
    char key[128], value[TEXT];
    Code code = device_fault(function, first, 0);
    if (code) return code;
    snprintf(key, sizeof key, "pair%d-%d.%s", device_of(first), device_of(second), field);
    if (!lookup(key, value)) {
        snprintf(key, sizeof key, "pairs.%s", field);
        if (!lookup(key, value)) return NOT_SUPPORTED;
    }
    *out = (u32)strtoul(value, NULL, 0);
    return OK;
}

Code nvmlDeviceGetTopologyCommonAncestor(Handle first, Handle second, u32 *out) {
    return pair_of("nvmlDeviceGetTopologyCommonAncestor", first, second, "path", out);
}

Code nvmlDeviceGetP2PStatus(Handle first, Handle second, int index, u32 *out) {
    return pair_of("nvmlDeviceGetP2PStatus", first, second, index == 0 ? "read" : "write", out);
}

Code nvmlDeviceGetNvLinkState(Handle handle, u32 link, u32 *out) {
    u64 links = 0, up = ~0ULL;
    Code code = number_of("nvmlDeviceGetNvLinkState", handle, "nvlinks", &links);
    if (code) return code;
    if (link >= links) return INVALID_ARGUMENT;
    number_of("nvmlDeviceGetNvLinkState", handle, "nvlinks_up", &up);
    *out = (u32)(up >> link & 1);
    return OK;
}

/* "gpu0.nvlink_ends switch" or a PCI address: where every link of the device ends; "gpu0.nvlink3_end" for one link. */
static Code link_end(const char *function, Handle handle, u32 link, char *value) {
    char field[64];
    u32 up = 0;
    Code code = nvmlDeviceGetNvLinkState(handle, link, &up);
    if (code) return code;
    if ((code = device_fault(function, handle, 0))) return code;
    snprintf(field, sizeof field, "nvlink%u_end", link);
    return about(handle, field, value) || about(handle, "nvlink_ends", value) ? OK : NOT_SUPPORTED;
}

Code nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, u32 link, u32 *out) {
    char value[TEXT];
    Code code = link_end("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, value);
    if (!code) *out = strcmp(value, "switch") ? 0 : 2;
    return code;
}

Code nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle handle, u32 link, PciInfo *out) {
    char value[TEXT];
    Code code = link_end("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, value);
    memset(out, 0, sizeof *out);
    if (!code) memcpy(out->id, value, sizeof out->id - 1);
    return code;
}

/* All errors of a device are replays of its link 0. */
Code nvmlDeviceGetNvLinkErrorCounter(Handle handle, u32 link, u32 counter, u64 *out) {
    *out = 0;
    if (link || counter) return device_fault("nvmlDeviceGetNvLinkErrorCounter", handle, 0);
    return number_of("nvmlDeviceGetNvLinkErrorCounter", handle, "nvlink_errors", out);
}

/* ---- events: "gpu1.xids 79,48", each delivered once a process ---- */

typedef struct { Handle device; u64 type, data; u32 gpu_instance, compute_instance; } Event;

Code nvmlEventSetCreate(Handle *out) { *out = (Handle)1; return fault("nvmlEventSetCreate"); }
Code nvmlEventSetFree(Handle set) { (void)set; return OK; }

Code nvmlDeviceRegisterEvents(Handle handle, u64 types, Handle set) {
    (void)types, (void)set;
    return device_fault("nvmlDeviceRegisterEvents", handle, 0);
}

Code nvmlEventSetWait_v2(Handle set, Event *out, u32 timeout_ms) {
    static int delivered[DEVICES];
    u32 count = 0;
    (void)set, (void)timeout_ms;
    if (nvmlDeviceGetCount_v2(&count)) return DRIVER_NOT_LOADED;
    for (u32 device = 0; device < count && device < DEVICES; device++) {
        char value[TEXT], *rest = value, *entry;
        Handle handle = (Handle)(intptr_t)(device + 1);
        if (!about(handle, "xids", value)) continue;
        for (int i = 0; (entry = strsep(&rest, ",")); i++) {
            if (i < delivered[device]) continue;
            delivered[device]++;
            memset(out, 0, sizeof *out);
            out->device = handle;
            out->type = 8;
            out->data = strtoull(entry, NULL, 0);
            return OK;
        }
    }
    return TIMED_OUT;
}
