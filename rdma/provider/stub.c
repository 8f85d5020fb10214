/* Stub of libibverbs to link the provider against: only names and their versions matter, of which
 * the building machine has those of one ABI. */
#define JOIN(name, number) name##number
#define REGISTER(number) JOIN(verbs_register_driver_, number)
#define EXPORTED __attribute__((visibility("default"))) void

EXPORTED REGISTER(ROCEFS_ABI)(void);
EXPORTED _verbs_init_and_alloc_context(void);
EXPORTED verbs_set_ops(void);
EXPORTED verbs_uninit_context(void);
EXPORTED __verbs_log(void);

void REGISTER(ROCEFS_ABI)(void) {}
void _verbs_init_and_alloc_context(void) {}
void verbs_set_ops(void) {}
void verbs_uninit_context(void) {}
void __verbs_log(void) {}
__attribute__((visibility("default"))) _Bool verbs_allow_disassociate_destroy;
