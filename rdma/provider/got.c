/* Redirection of a library's own calls of a function: overwrites the slot of the library's global
 * offset table that the dynamic relocation for the function fills. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

#if defined(__x86_64__)
static const uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
static const uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
#error "the relocation types of this machine are not known here"
#endif

/* Parts of an object's dynamic section that are needed. */
struct dynamic {
  const ElfW(Sym) * symbols;
  const char* names;
  struct {
    const ElfW(Rela) * first;
    size_t bytes;
  } tables[2]; /* calls, data */
};

struct search {
  const char* library; /* NULL: libibverbs */
  const char* function;
  uintptr_t hook;
  int error; /* ENOENT until a slot is filled */
};

static bool contains(const struct dl_phdr_info* object, uintptr_t address) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
      return true;
  }
  return false;
}

static struct dynamic read_dynamic(const struct dl_phdr_info* object) {
  struct dynamic found = {0};
  const ElfW(Dyn)* entry = NULL;
  for (int i = 0; i < object->dlpi_phnum; ++i)
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = (const void*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
  for (; entry && entry->d_tag != DT_NULL; ++entry) {
    uintptr_t address = entry->d_un.d_ptr;
    if (address < object->dlpi_addr) address += object->dlpi_addr; /* so in some C libraries */
    switch (entry->d_tag) {
      case DT_SYMTAB:
        found.symbols = (const void*)address;
        break;
      case DT_STRTAB:
        found.names = (const void*)address;
        break;
      case DT_JMPREL:
        found.tables[0].first = (const void*)address;
        break;
      case DT_PLTRELSZ:
        found.tables[0].bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        found.tables[1].first = (const void*)address;
        break;
      case DT_RELASZ:
        found.tables[1].bytes = entry->d_un.d_val;
        break;
    }
  }
  return found;
}

/* True if the whole page became read-only after relocation; a page of which only a part should did
 * not. */
static bool is_protected(const struct dl_phdr_info* object, uintptr_t page, size_t page_size) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_RELRO && page + page_size > begin &&
        page + page_size <= begin + part->p_memsz)
      return true;
  }
  return false;
}

static int fill(const struct dl_phdr_info* object, uintptr_t slot, uintptr_t hook) {
  size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t page = slot & ~(page_size - 1);
  bool protect = is_protected(object, page, page_size);
  if (protect && mprotect((void*)page, page_size, PROT_READ | PROT_WRITE)) return errno;
  __atomic_store_n((uintptr_t*)slot, hook, __ATOMIC_RELEASE);
  if (protect) mprotect((void*)page, page_size, PROT_READ);
  return 0;
}

static bool is_slot_of(const struct dynamic* dynamic, const char* function,
                       const ElfW(Rela) * relocation) {
  uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
  if (type != kSlotTypes[0] && type != kSlotTypes[1]) return false;
  const ElfW(Sym)* symbol = &dynamic->symbols[ELF64_R_SYM(relocation->r_info)];
  return strcmp(dynamic->names + symbol->st_name, function) == 0;
}

/* Finds libibverbs under any name: the object that registers drivers. Others by the beginning of
 * their file name. */
static bool is_library(const struct dl_phdr_info* object, const char* library) {
  if (!library) return contains(object, (uintptr_t)&verbs_set_ops);
  const char* slash = strrchr(object->dlpi_name, '/');
  return strncmp(slash ? slash + 1 : object->dlpi_name, library, strlen(library)) == 0;
}

static int visit(struct dl_phdr_info* object, size_t size, void* data) {
  struct search* search = data;
  (void)size;
  if (!is_library(object, search->library)) return 0;
  struct dynamic dynamic = read_dynamic(object);
  if (!dynamic.symbols || !dynamic.names) return 1;
  for (int table = 0; table < 2; ++table) {
    const ElfW(Rela)* first = dynamic.tables[table].first;
    size_t count = first ? dynamic.tables[table].bytes / sizeof *first : 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_slot_of(&dynamic, search->function, &first[i])) continue;
      search->error = fill(object, object->dlpi_addr + first[i].r_offset, search->hook);
      if (search->error) return 1;
    }
  }
  return 1;
}

int rocefs_hook(const char* library, const char* function, uintptr_t hook) {
  struct search search = {library, function, hook, ENOENT};
  dl_iterate_phdr(visit, &search);
  return search.error;
}
