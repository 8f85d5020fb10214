#include "pcc/run/offline.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "pcc/api/parameter.h"
#include "pcc/api/register_access.h"

namespace rocefs {

void PccOffline::unmap(void* memory, size_t size) {
  ::munmap(memory, size);
}

template <class Page>
PccOffline::PagePtr<Page> PccOffline::map() {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return PagePtr<Page>(memory == MAP_FAILED ? nullptr : static_cast<Page*>(memory));
}

PccOffline::PccOffline(PagePtr<rocefs_signals_page> signals, PagePtr<rocefs_control_page> control,
                       uint64_t seed, PccLog log)
    : signals_(std::move(signals)),
      control_(std::move(control)),
      log_(std::move(log)),
      run_(*signals_, *control_, 1, slots_, 0, seed, interval_, log_) {}

Result<std::unique_ptr<PccOffline>> PccOffline::of(PccAlgorithm algorithm, uint64_t seed,
                                                   PccLog log) {
  auto signals = map<rocefs_signals_page>();
  auto control = map<rocefs_control_page>();
  if (!signals || !control) return Error{ENOMEM, "no memory for register pages"};
  std::unique_ptr<PccOffline> offline(
      new PccOffline(std::move(signals), std::move(control), seed, std::move(log)));
  mango_status_e status = offline->slots_.add(0, std::move(algorithm));
  if (status != MANGO_STATUS_OK) return Error{EINVAL, mango_status_str(status)};
  return offline;
}

PccQp* PccOffline::begin(const Input& input, uint32_t line) {
  qps_.erase(input.qpn);
  rocefs_qp_signals& signals = signals_->qps[line];
  rocefs_qp_control& control = control_->qps[line];
  store_word(signals.generation, input.generation);
  store_word(signals.cnps, uint64_t{0});
  store_word(signals.line_bps, input.line_bps);
  store_word(control.window, uint64_t{input.generation} << 32 | input.window);
  auto [begun, inserted] = qps_.try_emplace(input.qpn, input.qpn, input.generation, signals,
                                            control, run_.slot, *slots_.at(run_.slot), run_.seed);
  return &begun->second;
}

// The engine's part.
void PccOffline::tell(const Input& input, uint32_t line, PccQp& qp) {
  rocefs_qp_signals& signals = signals_->qps[line];
  store_word(signals_->active_count, input.active);
  store_word(signals.line_bps, input.line_bps);
  store_word(signals.cnps, load_word(signals.cnps) + input.cnps);
  if (input.rtt_new && qp.probing()) {
    store_word(signals.rtt_ns, input.rtt_ns);
    announce(signals.rtt_probe, load_word(control_->qps[line].probe));
  }
  if (!qp.wants_events()) return;
  for (const rocefs_qp_event& event : input.events) qp.add_event(event);
}

Result<PccOffline::Decision> PccOffline::call(const Input& input) {
  const uint32_t line = input.qpn - ROCEFS_FIRST_QPN;
  if (input.qpn < ROCEFS_FIRST_QPN || line >= ROCEFS_MAX_QPS) {
    return errorf(EINVAL, "there is no QP {}", input.qpn);
  }
  auto found = qps_.find(input.qpn);
  PccQp* qp = found == qps_.end() ? nullptr : &found->second;
  if (input.first) {
    qp = begin(input, line);
  } else if (!qp || qp->generation() != input.generation) {
    return errorf(EINVAL, "QP {} has not begun", input.qpn);
  }
  if (run_.damaged()) return Error{EFAULT, *run_.damage()};
  tell(input, line, *qp);
  // As PccPoller::step().
  const PccAlgorithm& algorithm = *slots_.at(qp->slot());
  qp->begin_call();
  if (qp->probing() && algorithm.event) {
    reads_.rtts.add();
    qp->read_answer();
    qp->end_probe(input.at);
  }
  {
    PccCall call(run_, 0, reads_, input.at);
    call.call(*qp, algorithm, input.due);
  }
  if (!qp->parameters().intact()) {
    run_.set_damage(fmt::format("the algorithm wrote past its parameters on QP {}", input.qpn));
    return Error{EFAULT, *run_.damage()};
  }
  return Decision{qp->window(), qp->rate(), qp->asked()};
}

bool PccOffline::probing(uint32_t qpn) const {
  auto found = qps_.find(qpn);
  return found != qps_.end() && found->second.probing();
}

Result<void> PccOffline::set(const ParameterChange& change) {
  PccAlgorithm& algorithm = *slots_.at(0);
  Result<std::vector<ParameterPlace>> places = parse_changes(algorithm, {&change, 1});
  if (!places) return places.error();
  if (Result<void> checked = check_bounds(algorithm, *places); !checked) return checked;
  write_places(*places, algorithm.initial.data());
  for (auto& [qpn, qp] : qps_) write_places(*places, qp.parameters().data());
  return {};
}

Result<std::string> PccOffline::value(std::string_view name, uint32_t qpn) {
  const PccAlgorithm::Parameter* parameter = find_parameter(algorithm(), name);
  if (!parameter) return no_parameter(algorithm(), name);
  auto found = qps_.find(qpn);
  const uint8_t* block =
      found == qps_.end() ? algorithm().initial.data() : found->second.parameters().data();
  return format_parameter(parameter->type, block + parameter->offset);
}

}  // namespace rocefs
