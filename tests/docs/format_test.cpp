// SPDX-License-Identifier: BSD-3-Clause
//
// docs/format.md says what the headers say: every field of every struct on the medium, or between
// nodes, with its offset and size, every number, and no byte of a struct left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cache/aside_format.hpp"
#include "cache/protocol_format.hpp"
#include "levels/guard_format.hpp"
#include "levels/lease_format.hpp"
#include "levels/node_file_format.hpp"
#include "levels/sealed_format.hpp"
#include "parts/part_format.hpp"
#include "parts/part_share_format.hpp"
#include "perdure/perdure.h"
#include "pmem/region_format.hpp"
#include "pool/box_note_format.hpp"
#include "pool/file_note_format.hpp"
#include "pool/image_format.hpp"
#include "pool/job_record_format.hpp"
#include "pool/run_page.hpp"
#include "pool/slot_format.hpp"
#include "pool/state_word.hpp"
#include "pool/unopened_note_format.hpp"
#include "source_tree.hpp"
#include "trace/trace_format.hpp"
#include "veloc/checkpoint_format.hpp"

namespace perdure {
namespace {

struct Field {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool operator==(const Field&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Field& field) {
  return out << field.name << " at " << field.offset << ", " << field.size << " bytes";
}

struct Struct {
  std::size_t size = 0;
  std::vector<Field> fields;
};

// offsetof needs the names of type and field as they are.
#define PERDURE_FIELD(type, field)                     \
  Field {                                              \
    #field, offsetof(type, field), sizeof(type::field) \
  }

std::map<std::string, Struct> structs_of_headers() {
  std::map<std::string, Struct> all;
  all["JobRecordFormat"] = {
      sizeof(JobRecordFormat),
      {PERDURE_FIELD(JobRecordFormat, magic), PERDURE_FIELD(JobRecordFormat, format_version),
       PERDURE_FIELD(JobRecordFormat, ranks), PERDURE_FIELD(JobRecordFormat, job_id),
       PERDURE_FIELD(JobRecordFormat, job_name), PERDURE_FIELD(JobRecordFormat, created_ns),
       PERDURE_FIELD(JobRecordFormat, place), PERDURE_FIELD(JobRecordFormat, generation),
       PERDURE_FIELD(JobRecordFormat, checksum)}};
  all["RegionHeaderFormat"] = {sizeof(RegionHeaderFormat),
                               {PERDURE_FIELD(RegionHeaderFormat, magic),
                                PERDURE_FIELD(RegionHeaderFormat, format_version),
                                PERDURE_FIELD(RegionHeaderFormat, rank),
                                PERDURE_FIELD(RegionHeaderFormat, ranks),
                                PERDURE_FIELD(RegionHeaderFormat, align_bytes),
                                PERDURE_FIELD(RegionHeaderFormat, job_id),
                                PERDURE_FIELD(RegionHeaderFormat, job_name),
                                PERDURE_FIELD(RegionHeaderFormat, created_ns),
                                PERDURE_FIELD(RegionHeaderFormat, slot_offset),
                                PERDURE_FIELD(RegionHeaderFormat, slot_bytes),
                                PERDURE_FIELD(RegionHeaderFormat, data_offset),
                                PERDURE_FIELD(RegionHeaderFormat, block_bytes),
                                PERDURE_FIELD(RegionHeaderFormat, slots),
                                PERDURE_FIELD(RegionHeaderFormat, generation),
                                PERDURE_FIELD(RegionHeaderFormat, image_incarnation),
                                PERDURE_FIELD(RegionHeaderFormat, image_version),
                                PERDURE_FIELD(RegionHeaderFormat, image_shares),
                                PERDURE_FIELD(RegionHeaderFormat, lineage),
                                PERDURE_FIELD(RegionHeaderFormat, reserved),
                                PERDURE_FIELD(RegionHeaderFormat, checksum)}};
  return all;
}

void add_structs_of_slots(std::map<std::string, Struct>& all) {
  all["SlotStateFormat"] = {
      sizeof(SlotStateFormat),
      {PERDURE_FIELD(SlotStateFormat, state_word), PERDURE_FIELD(SlotStateFormat, reserved)}};
  all["SlotBodyFormat"] = {
      sizeof(SlotBodyFormat),
      {PERDURE_FIELD(SlotBodyFormat, checksum), PERDURE_FIELD(SlotBodyFormat, body_bytes),
       PERDURE_FIELD(SlotBodyFormat, version), PERDURE_FIELD(SlotBodyFormat, incarnation),
       PERDURE_FIELD(SlotBodyFormat, committed_ns), PERDURE_FIELD(SlotBodyFormat, allocated_end),
       PERDURE_FIELD(SlotBodyFormat, arrays), PERDURE_FIELD(SlotBodyFormat, scalars),
       PERDURE_FIELD(SlotBodyFormat, depth), PERDURE_FIELD(SlotBodyFormat, parent)}};
  all["PagePointerFormat"] = {
      sizeof(PagePointerFormat),
      {PERDURE_FIELD(PagePointerFormat, offset), PERDURE_FIELD(PagePointerFormat, checksum)}};
  all["ArrayFormat"] = {
      sizeof(ArrayFormat),
      {PERDURE_FIELD(ArrayFormat, type), PERDURE_FIELD(ArrayFormat, mode),
       PERDURE_FIELD(ArrayFormat, checksums), PERDURE_FIELD(ArrayFormat, dimensions),
       PERDURE_FIELD(ArrayFormat, shape), PERDURE_FIELD(ArrayFormat, first_offset),
       PERDURE_FIELD(ArrayFormat, stride_bytes), PERDURE_FIELD(ArrayFormat, table_first_offset),
       PERDURE_FIELD(ArrayFormat, table_stride_bytes), PERDURE_FIELD(ArrayFormat, table_checksum),
       PERDURE_FIELD(ArrayFormat, copy), PERDURE_FIELD(ArrayFormat, part),
       PERDURE_FIELD(ArrayFormat, name_bytes), PERDURE_FIELD(ArrayFormat, spare_copies)}};
  all["FileNoteFormat"] = {
      sizeof(FileNoteFormat),
      {PERDURE_FIELD(FileNoteFormat, version), PERDURE_FIELD(FileNoteFormat, path_bytes),
       PERDURE_FIELD(FileNoteFormat, place_bytes), PERDURE_FIELD(FileNoteFormat, reserved),
       PERDURE_FIELD(FileNoteFormat, bytes), PERDURE_FIELD(FileNoteFormat, checksum)}};
  all["FirstNoteFormat"] = {
      sizeof(FirstNoteFormat),
      {PERDURE_FIELD(FirstNoteFormat, checksum), PERDURE_FIELD(FirstNoteFormat, job_id)}};
  all["UnopenedNoteFormat"] = {
      sizeof(UnopenedNoteFormat),
      {PERDURE_FIELD(UnopenedNoteFormat, version), PERDURE_FIELD(UnopenedNoteFormat, count)}};
  all["UnopenedArrayFormat"] = {
      sizeof(UnopenedArrayFormat),
      {PERDURE_FIELD(UnopenedArrayFormat, part), PERDURE_FIELD(UnopenedArrayFormat, name_bytes)}};
  all["BoxNoteFormat"] = {
      sizeof(BoxNoteFormat),
      {PERDURE_FIELD(BoxNoteFormat, version), PERDURE_FIELD(BoxNoteFormat, dimensions),
       PERDURE_FIELD(BoxNoteFormat, part), PERDURE_FIELD(BoxNoteFormat, name_bytes),
       PERDURE_FIELD(BoxNoteFormat, global_shape), PERDURE_FIELD(BoxNoteFormat, first)}};
  all["ScalarFormat"] = {
      sizeof(ScalarFormat),
      {PERDURE_FIELD(ScalarFormat, bytes), PERDURE_FIELD(ScalarFormat, name_bytes),
       PERDURE_FIELD(ScalarFormat, type)}};
}

void add_run_page(std::map<std::string, Struct>& all) {
  all["RunPageFormat"] = {
      sizeof(RunPageFormat),
      {PERDURE_FIELD(RunPageFormat, magic), PERDURE_FIELD(RunPageFormat, pid),
       PERDURE_FIELD(RunPageFormat, rank), PERDURE_FIELD(RunPageFormat, ranks),
       PERDURE_FIELD(RunPageFormat, phase), PERDURE_FIELD(RunPageFormat, version),
       PERDURE_FIELD(RunPageFormat, iteration), PERDURE_FIELD(RunPageFormat, commits),
       PERDURE_FIELD(RunPageFormat, commit_ns_last), PERDURE_FIELD(RunPageFormat, commit_ns_total),
       PERDURE_FIELD(RunPageFormat, commit_bytes_last),
       PERDURE_FIELD(RunPageFormat, commit_bytes_total),
       PERDURE_FIELD(RunPageFormat, model_ns_total), PERDURE_FIELD(RunPageFormat, restored_version),
       PERDURE_FIELD(RunPageFormat, restart_ns), PERDURE_FIELD(RunPageFormat, refusal)}};
}

void add_structs_of_traces(std::map<std::string, Struct>& all) {
  using trace::FooterFormat, trace::FrameHeaderFormat, trace::TraceHeaderFormat,
      trace::TrailerFormat;
  all["TraceHeaderFormat"] = {
      sizeof(TraceHeaderFormat),
      {PERDURE_FIELD(TraceHeaderFormat, magic), PERDURE_FIELD(TraceHeaderFormat, format_version),
       PERDURE_FIELD(TraceHeaderFormat, command_bytes),
       PERDURE_FIELD(TraceHeaderFormat, page_bytes), PERDURE_FIELD(TraceHeaderFormat, line_bytes),
       PERDURE_FIELD(TraceHeaderFormat, cache_bytes), PERDURE_FIELD(TraceHeaderFormat, cache_ways),
       PERDURE_FIELD(TraceHeaderFormat, mode), PERDURE_FIELD(TraceHeaderFormat, floor_pages),
       PERDURE_FIELD(TraceHeaderFormat, rank), PERDURE_FIELD(TraceHeaderFormat, ranks),
       PERDURE_FIELD(TraceHeaderFormat, flags), PERDURE_FIELD(TraceHeaderFormat, created_ns),
       PERDURE_FIELD(TraceHeaderFormat, reserved), PERDURE_FIELD(TraceHeaderFormat, checksum)}};
  all["FrameHeaderFormat"] = {
      sizeof(FrameHeaderFormat),
      {PERDURE_FIELD(FrameHeaderFormat, magic), PERDURE_FIELD(FrameHeaderFormat, kind),
       PERDURE_FIELD(FrameHeaderFormat, sequence), PERDURE_FIELD(FrameHeaderFormat, previous),
       PERDURE_FIELD(FrameHeaderFormat, stored_bytes), PERDURE_FIELD(FrameHeaderFormat, raw_bytes),
       PERDURE_FIELD(FrameHeaderFormat, records), PERDURE_FIELD(FrameHeaderFormat, new_pages),
       PERDURE_FIELD(FrameHeaderFormat, checksum)}};
  all["FooterFormat"] = {
      sizeof(FooterFormat),
      {PERDURE_FIELD(FooterFormat, records), PERDURE_FIELD(FooterFormat, reads),
       PERDURE_FIELD(FooterFormat, writes), PERDURE_FIELD(FooterFormat, program_accesses),
       PERDURE_FIELD(FooterFormat, elapsed_ns), PERDURE_FIELD(FooterFormat, compute_ns),
       PERDURE_FIELD(FooterFormat, pages), PERDURE_FIELD(FooterFormat, streams)}};
  all["TrailerFormat"] = {
      sizeof(TrailerFormat),
      {PERDURE_FIELD(TrailerFormat, footer_offset), PERDURE_FIELD(TrailerFormat, checksum),
       PERDURE_FIELD(TrailerFormat, magic)}};
}

void add_structs_of_veloc(std::map<std::string, Struct>& all) {
  using perdure_veloc::LabelFormat, perdure_veloc::LayoutFormat, perdure_veloc::RegionFormat;
  all["LayoutFormat"] = {
      sizeof(LayoutFormat),
      {PERDURE_FIELD(LayoutFormat, format), PERDURE_FIELD(LayoutFormat, checksums),
       PERDURE_FIELD(LayoutFormat, table_at), PERDURE_FIELD(LayoutFormat, table_bytes),
       PERDURE_FIELD(LayoutFormat, regions), PERDURE_FIELD(LayoutFormat, labels),
       PERDURE_FIELD(LayoutFormat, label)}};
  all["LabelFormat"] = {sizeof(LabelFormat),
                        {PERDURE_FIELD(LabelFormat, version), PERDURE_FIELD(LabelFormat, label)}};
  all["RegionFormat"] = {
      sizeof(RegionFormat),
      {PERDURE_FIELD(RegionFormat, id), PERDURE_FIELD(RegionFormat, bytes),
       PERDURE_FIELD(RegionFormat, at), PERDURE_FIELD(RegionFormat, name_bytes)}};
}

void add_structs_of_levels(std::map<std::string, Struct>& all) {
  all["SealedHeaderFormat"] = {
      sizeof(SealedHeaderFormat),
      {PERDURE_FIELD(SealedHeaderFormat, magic), PERDURE_FIELD(SealedHeaderFormat, format_version),
       PERDURE_FIELD(SealedHeaderFormat, kind), PERDURE_FIELD(SealedHeaderFormat, job_id),
       PERDURE_FIELD(SealedHeaderFormat, job_name),
       PERDURE_FIELD(SealedHeaderFormat, job_created_ns), PERDURE_FIELD(SealedHeaderFormat, rank),
       PERDURE_FIELD(SealedHeaderFormat, ranks), PERDURE_FIELD(SealedHeaderFormat, version),
       PERDURE_FIELD(SealedHeaderFormat, incarnation),
       PERDURE_FIELD(SealedHeaderFormat, payload_bytes), PERDURE_FIELD(SealedHeaderFormat, lineage),
       PERDURE_FIELD(SealedHeaderFormat, reserved), PERDURE_FIELD(SealedHeaderFormat, checksum)}};
  all["ImageHeadFormat"] = {
      sizeof(ImageHeadFormat),
      {PERDURE_FIELD(ImageHeadFormat, magic), PERDURE_FIELD(ImageHeadFormat, body_bytes),
       PERDURE_FIELD(ImageHeadFormat, slot_bytes), PERDURE_FIELD(ImageHeadFormat, block_bytes),
       PERDURE_FIELD(ImageHeadFormat, align_bytes), PERDURE_FIELD(ImageHeadFormat, slots),
       PERDURE_FIELD(ImageHeadFormat, shares), PERDURE_FIELD(ImageHeadFormat, reserved)}};
  all["ImageShareFormat"] = {
      sizeof(ImageShareFormat),
      {PERDURE_FIELD(ImageShareFormat, name_bytes), PERDURE_FIELD(ImageShareFormat, head_bytes),
       PERDURE_FIELD(ImageShareFormat, bytes)}};
  all["GuardMemberFormat"] = {
      sizeof(GuardMemberFormat),
      {PERDURE_FIELD(GuardMemberFormat, rank), PERDURE_FIELD(GuardMemberFormat, reserved),
       PERDURE_FIELD(GuardMemberFormat, image_bytes),
       PERDURE_FIELD(GuardMemberFormat, image_checksum)}};
  all["GuardFormat"] = {sizeof(GuardFormat),
                        {PERDURE_FIELD(GuardFormat, members), PERDURE_FIELD(GuardFormat, rows),
                         PERDURE_FIELD(GuardFormat, coding), PERDURE_FIELD(GuardFormat, reserved),
                         PERDURE_FIELD(GuardFormat, segment_bytes)}};
}

void add_structs_of_leases(std::map<std::string, Struct>& all) {
  all["LeaseFormat"] = {
      sizeof(LeaseFormat),
      {PERDURE_FIELD(LeaseFormat, number), PERDURE_FIELD(LeaseFormat, beats),
       PERDURE_FIELD(LeaseFormat, patience_ms), PERDURE_FIELD(LeaseFormat, since_ns),
       PERDURE_FIELD(LeaseFormat, held), PERDURE_FIELD(LeaseFormat, reserved),
       PERDURE_FIELD(LeaseFormat, pid), PERDURE_FIELD(LeaseFormat, start_ticks),
       PERDURE_FIELD(LeaseFormat, pid_space), PERDURE_FIELD(LeaseFormat, boot_id),
       PERDURE_FIELD(LeaseFormat, host), PERDURE_FIELD(LeaseFormat, batch_job)}};
  all["AncestorFormat"] = {
      sizeof(AncestorFormat),
      {PERDURE_FIELD(AncestorFormat, lineage), PERDURE_FIELD(AncestorFormat, incarnation),
       PERDURE_FIELD(AncestorFormat, version)}};
}

void add_structs_of_drains(std::map<std::string, Struct>& all) {
  all["NodeImageFormat"] = {
      sizeof(NodeImageFormat),
      {PERDURE_FIELD(NodeImageFormat, rank), PERDURE_FIELD(NodeImageFormat, reserved),
       PERDURE_FIELD(NodeImageFormat, offset), PERDURE_FIELD(NodeImageFormat, bytes),
       PERDURE_FIELD(NodeImageFormat, checksum)}};
  all["ManifestFileFormat"] = {
      sizeof(ManifestFileFormat),
      {PERDURE_FIELD(ManifestFileFormat, node), PERDURE_FIELD(ManifestFileFormat, ranks),
       PERDURE_FIELD(ManifestFileFormat, bytes), PERDURE_FIELD(ManifestFileFormat, checksum)}};
}

void add_structs_of_parts(std::map<std::string, Struct>& all) {
  all["PartHeaderFormat"] = {sizeof(PartHeaderFormat),
                             {PERDURE_FIELD(PartHeaderFormat, magic),
                              PERDURE_FIELD(PartHeaderFormat, format_version),
                              PERDURE_FIELD(PartHeaderFormat, node),
                              PERDURE_FIELD(PartHeaderFormat, nodes),
                              PERDURE_FIELD(PartHeaderFormat, layout),
                              PERDURE_FIELD(PartHeaderFormat, instance),
                              PERDURE_FIELD(PartHeaderFormat, boot),
                              PERDURE_FIELD(PartHeaderFormat, block_bytes),
                              PERDURE_FIELD(PartHeaderFormat, part_blocks),
                              PERDURE_FIELD(PartHeaderFormat, blocks),
                              PERDURE_FIELD(PartHeaderFormat, state_offset),
                              PERDURE_FIELD(PartHeaderFormat, journal_offset),
                              PERDURE_FIELD(PartHeaderFormat, journal_entries),
                              PERDURE_FIELD(PartHeaderFormat, table_offset),
                              PERDURE_FIELD(PartHeaderFormat, block_offset),
                              PERDURE_FIELD(PartHeaderFormat, created_ns),
                              PERDURE_FIELD(PartHeaderFormat, file_device),
                              PERDURE_FIELD(PartHeaderFormat, file_inode),
                              PERDURE_FIELD(PartHeaderFormat, path),
                              PERDURE_FIELD(PartHeaderFormat, pool_job),
                              PERDURE_FIELD(PartHeaderFormat, pool),
                              PERDURE_FIELD(PartHeaderFormat, pool_version),
                              PERDURE_FIELD(PartHeaderFormat, pool_incarnation),
                              PERDURE_FIELD(PartHeaderFormat, next_incarnation),
                              PERDURE_FIELD(PartHeaderFormat, checksum)}};
  all["PartStateFormat"] = {sizeof(PartStateFormat),
                            {PERDURE_FIELD(PartStateFormat, size_bytes),
                             PERDURE_FIELD(PartStateFormat, visible_bytes),
                             PERDURE_FIELD(PartStateFormat, lock),
                             PERDURE_FIELD(PartStateFormat, evicting),
                             PERDURE_FIELD(PartStateFormat, pointer_owners),
                             PERDURE_FIELD(PartStateFormat, pointers),
                             PERDURE_FIELD(PartStateFormat, base_version),
                             PERDURE_FIELD(PartStateFormat, sized_versions),
                             PERDURE_FIELD(PartStateFormat, sizes),
                             PERDURE_FIELD(PartStateFormat, prepared),
                             PERDURE_FIELD(PartStateFormat, touched_blocks),
                             PERDURE_FIELD(PartStateFormat, in_use),
                             PERDURE_FIELD(PartStateFormat, changing),
                             PERDURE_FIELD(PartStateFormat, change_begun_ns),
                             PERDURE_FIELD(PartStateFormat, slowest_change_ns),
                             PERDURE_FIELD(PartStateFormat, other_clock),
                             PERDURE_FIELD(PartStateFormat, stamp_turn),
                             PERDURE_FIELD(PartStateFormat, stamps),
                             PERDURE_FIELD(PartStateFormat, durable),
                             PERDURE_FIELD(PartStateFormat, owners),
                             PERDURE_FIELD(PartStateFormat, round),
                             PERDURE_FIELD(PartStateFormat, hand),
                             PERDURE_FIELD(PartStateFormat, round_hand),
                             PERDURE_FIELD(PartStateFormat, evicted_blocks),
                             PERDURE_FIELD(PartStateFormat, reserved),
                             PERDURE_FIELD(PartStateFormat, users)}};
}

void add_structs_in_parts(std::map<std::string, Struct>& all) {
  all["PartShareFormat"] = {
      sizeof(PartShareFormat),
      {PERDURE_FIELD(PartShareFormat, magic), PERDURE_FIELD(PartShareFormat, instance),
       PERDURE_FIELD(PartShareFormat, file_bytes), PERDURE_FIELD(PartShareFormat, block_bytes),
       PERDURE_FIELD(PartShareFormat, part_blocks), PERDURE_FIELD(PartShareFormat, layout),
       PERDURE_FIELD(PartShareFormat, nodes), PERDURE_FIELD(PartShareFormat, node),
       PERDURE_FIELD(PartShareFormat, share), PERDURE_FIELD(PartShareFormat, shares),
       PERDURE_FIELD(PartShareFormat, reserved)}};
  all["StampFormat"] = {
      sizeof(StampFormat),
      {PERDURE_FIELD(StampFormat, size_bytes), PERDURE_FIELD(StampFormat, modified_ns),
       PERDURE_FIELD(StampFormat, changed_ns)}};
  all["OwnerFormat"] = {sizeof(OwnerFormat),
                        {PERDURE_FIELD(OwnerFormat, process), PERDURE_FIELD(OwnerFormat, start)}};
  all["UserFormat"] = {sizeof(UserFormat),
                       {PERDURE_FIELD(UserFormat, first), PERDURE_FIELD(UserFormat, any),
                        PERDURE_FIELD(UserFormat, blocks)}};
  all["AsideHeaderFormat"] = {
      sizeof(AsideHeaderFormat),
      {PERDURE_FIELD(AsideHeaderFormat, magic), PERDURE_FIELD(AsideHeaderFormat, format_version),
       PERDURE_FIELD(AsideHeaderFormat, reserved), PERDURE_FIELD(AsideHeaderFormat, id),
       PERDURE_FIELD(AsideHeaderFormat, making)}};
  all["AsideEntryFormat"] = {
      sizeof(AsideEntryFormat),
      {PERDURE_FIELD(AsideEntryFormat, device), PERDURE_FIELD(AsideEntryFormat, inode),
       PERDURE_FIELD(AsideEntryFormat, used), PERDURE_FIELD(AsideEntryFormat, busy),
       PERDURE_FIELD(AsideEntryFormat, leave), PERDURE_FIELD(AsideEntryFormat, reserved),
       PERDURE_FIELD(AsideEntryFormat, pointer), PERDURE_FIELD(AsideEntryFormat, unused)}};
  all["JournalFormat"] = {
      sizeof(JournalFormat),
      {PERDURE_FIELD(JournalFormat, owner), PERDURE_FIELD(JournalFormat, length),
       PERDURE_FIELD(JournalFormat, offset), PERDURE_FIELD(JournalFormat, checksum),
       PERDURE_FIELD(JournalFormat, writing_offset), PERDURE_FIELD(JournalFormat, writing_bytes),
       PERDURE_FIELD(JournalFormat, reserved), PERDURE_FIELD(JournalFormat, bytes)}};
  all["BlockFormat"] = {
      sizeof(BlockFormat),
      {PERDURE_FIELD(BlockFormat, state), PERDURE_FIELD(BlockFormat, undo_or_uses),
       PERDURE_FIELD(BlockFormat, dirty), PERDURE_FIELD(BlockFormat, leaving),
       PERDURE_FIELD(BlockFormat, kept), PERDURE_FIELD(BlockFormat, claim)}};
  all["UndoFormat"] = {sizeof(UndoFormat),
                       {PERDURE_FIELD(UndoFormat, turn), PERDURE_FIELD(UndoFormat, version),
                        PERDURE_FIELD(UndoFormat, checksum), PERDURE_FIELD(UndoFormat, reserved)}};
}

void add_structs_of_protocol(std::map<std::string, Struct>& all) {
  all["ChallengeFormat"] = {
      sizeof(ChallengeFormat),
      {PERDURE_FIELD(ChallengeFormat, magic), PERDURE_FIELD(ChallengeFormat, protocol_version),
       PERDURE_FIELD(ChallengeFormat, reserved), PERDURE_FIELD(ChallengeFormat, nonce)}};
  all["GreetingFormat"] = {
      sizeof(GreetingFormat),
      {PERDURE_FIELD(GreetingFormat, magic), PERDURE_FIELD(GreetingFormat, protocol_version),
       PERDURE_FIELD(GreetingFormat, reserved), PERDURE_FIELD(GreetingFormat, nonce),
       PERDURE_FIELD(GreetingFormat, proof)}};
  all["WelcomeFormat"] = {sizeof(WelcomeFormat), {PERDURE_FIELD(WelcomeFormat, proof)}};
  all["PiecesFormat"] = {sizeof(PiecesFormat),
                         {PERDURE_FIELD(PiecesFormat, offset), PERDURE_FIELD(PiecesFormat, stride),
                          PERDURE_FIELD(PiecesFormat, bytes), PERDURE_FIELD(PiecesFormat, count)}};
  all["RequestFormat"] = {
      sizeof(RequestFormat),
      {PERDURE_FIELD(RequestFormat, verb), PERDURE_FIELD(RequestFormat, option),
       PERDURE_FIELD(RequestFormat, offset), PERDURE_FIELD(RequestFormat, bytes),
       PERDURE_FIELD(RequestFormat, value)}};
  all["AnswerFormat"] = {
      sizeof(AnswerFormat),
      {PERDURE_FIELD(AnswerFormat, code), PERDURE_FIELD(AnswerFormat, message_bytes),
       PERDURE_FIELD(AnswerFormat, payload_bytes), PERDURE_FIELD(AnswerFormat, values)}};
}
#undef PERDURE_FIELD

std::map<std::string, Struct> all_structs() {
  auto all = structs_of_headers();
  add_structs_of_slots(all);
  add_structs_of_levels(all);
  add_structs_of_leases(all);
  add_structs_of_drains(all);
  add_structs_of_veloc(all);
  add_structs_of_parts(all);
  add_structs_in_parts(all);
  add_structs_of_protocol(all);
  add_run_page(all);
  add_structs_of_traces(all);
  return all;
}

const std::map<std::string, std::uint64_t> numbers_of_headers{
    {"job_record_magic", job_record_magic},
    {"job_record_version", job_record_version},
    {"region_magic", region_magic},
    {"region_format_version", region_format_version},
    {"slots_max", slots_max},
    {"slot_bytes_max", slot_bytes_max},
    {"ranks_max", ranks_max},
    {"job_name_bytes", job_name_bytes},
    {"name_bytes_max", name_bytes_max},
    {"file_note_version", file_note_version},
    {"file_tail_bytes", file_tail_bytes},
    {"file_path_bytes_max", file_path_bytes_max},
    {"box_note_version", box_note_version},
    {"unopened_note_version", unopened_note_version},
    {"unopened_note_bytes_max", unopened_note_bytes_max},
    {"dimensions_max", dimensions_max},
    {"scalar_bytes_max", scalar_bytes_max},
    {"catalogue_page_bytes", catalogue_page_bytes},
    {"catalogue_depth_max", catalogue_depth_max},
    {"version_max", version_max},
    {"back_max", back_max},
    {"sealed_magic", sealed_magic},
    {"sealed_version", sealed_version},
    {"sealed_header_offset", sealed_header_offset},
    {"sealed_payload_offset", sealed_payload_offset},
    {"sealed_chunk_bytes", sealed_chunk_bytes},
    {"group_size_max", group_size_max},
    {"node_align_bytes", node_align_bytes},
    {"holder_text_bytes", holder_text_bytes},
    {"ancestors_max", ancestors_max},
    {"part_magic", part_magic},
    {"part_share_magic", part_share_magic},
    {"image_shares_max", image_shares_max},
    {"part_format_version", part_format_version},
    {"part_path_bytes", part_path_bytes},
    {"journal_entries_max", journal_entries_max},
    {"shared_pointers_max", shared_pointers_max},
    {"owners_max", owners_max},
    {"aside_magic", aside_magic},
    {"aside_format_version", aside_format_version},
    {"aside_page_bytes", aside_page_bytes},
    {"aside_entries", aside_entries},
    {"owner_bits", owner_bits},
    {"journal_bytes", journal_bytes},
    {"grains_per_block", grains_per_block},
    {"greeting_magic", greeting_magic},
    {"protocol_version", protocol_version},
    {"payload_bytes_max", payload_bytes_max},
    {"message_bytes_max", message_bytes_max},
    {"trace_magic", trace::trace_magic},
    {"trace_format_version", trace::trace_format_version},
    {"frame_magic", trace::frame_magic},
    {"trailer_magic", trace::trailer_magic},
    {"format_newest", perdure_veloc::format_newest},
    {"labels_max", perdure_veloc::labels_max},
    {"region_alignment", perdure_veloc::region_alignment},
    {"command_bytes_max", trace::command_bytes_max},
    {"region_bytes_max", trace::region_bytes_max},
    {"frame_records_max", trace::frame_records_max},
    {"trace_pages_max", trace::trace_pages_max},
    {"streams_max", trace::streams_max},
    {"PERDURE_BYTE", PERDURE_BYTE},
    {"PERDURE_INT32", PERDURE_INT32},
    {"PERDURE_INT64", PERDURE_INT64},
    {"PERDURE_FLOAT", PERDURE_FLOAT},
    {"PERDURE_DOUBLE", PERDURE_DOUBLE},
    {"PERDURE_COMPLEX_DOUBLE", PERDURE_COMPLEX_DOUBLE},
    {"PERDURE_UINT32", PERDURE_UINT32},
    {"PERDURE_UINT64", PERDURE_UINT64},
    {"PERDURE_BOOL", PERDURE_BOOL},
    {"PERDURE_TEXT", PERDURE_TEXT},
    {"PERDURE_INT8", PERDURE_INT8},
    {"PERDURE_INT16", PERDURE_INT16},
    {"PERDURE_UINT16", PERDURE_UINT16},
    {"PERDURE_COMPLEX_FLOAT", PERDURE_COMPLEX_FLOAT},
    {"PERDURE_COPY", PERDURE_COPY},
    {"PERDURE_TWIN", PERDURE_TWIN},
    {"PERDURE_LOG", PERDURE_LOG},
    {"PERDURE_FLUSH", PERDURE_FLUSH}};

// A row of a table of docs/format.md: its cells without blanks around them and without backquotes.
using Row = std::vector<std::string>;

Row cells_of(const std::string& line) {
  Row cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      const auto begin = cell.find_first_not_of(' ');
      const auto end = cell.find_last_not_of(' ');
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
      cell.clear();
    } else if (line[i] != '`') {
      cell += line[i];
    }
  }
  return cells;
}

// Every table row that begins with a number or a name, by the heading above it.
std::map<std::string, std::vector<Row>> tables_of_page() {
  std::map<std::string, std::vector<Row>> tables;
  std::ifstream page(source_file("docs/format.md"));
  std::string heading;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("#")) heading = line.substr(line.find_first_not_of("# "));
    if (!line.starts_with("|") || line.starts_with("|---")) continue;
    tables[heading].push_back(cells_of(line));
  }
  return tables;
}

std::vector<Field> fields_of(const std::vector<Row>& rows) {
  std::vector<Field> fields;
  for (const Row& row : rows) {
    if (row.at(0) == "offset") continue;
    fields.push_back({row.at(2), std::stoull(row.at(0)), std::stoull(row.at(1))});
  }
  return fields;
}

TEST(FormatPage, every_field_has_its_offset_and_size) {
  auto headers = all_structs();
  std::size_t described = 0;
  const auto tables = tables_of_page();
  for (const auto& [name, rows] : tables) {
    if (!name.ends_with("Format")) continue;
    ASSERT_TRUE(headers.contains(name)) << name << " is no struct on the medium";
    EXPECT_EQ(fields_of(rows), headers[name].fields) << "in table " << name;
    ++described;
  }
  EXPECT_EQ(described, headers.size()) << "a struct has no table";
}

// A field that a header gained would otherwise be missed by this test as well.
TEST(FormatPage, the_fields_leave_no_byte_of_a_struct_out) {
  auto headers = all_structs();
  for (const auto& [name, shape] : headers) {
    std::uint64_t end = 0;
    for (const Field& field : shape.fields) {
      EXPECT_EQ(field.offset, end) << "before " << name << "." << field.name;
      end = field.offset + field.size;
    }
    EXPECT_EQ(end, shape.size) << name;
  }
}

TEST(FormatPage, every_number_has_its_value) {
  std::map<std::string, std::uint64_t> page;
  const auto tables = tables_of_page();
  for (const Row& row : tables.at("Numbers")) {
    if (row.at(0) != "name") page[row.at(0)] = std::stoull(row.at(1), nullptr, 0);
  }
  EXPECT_EQ(page, numbers_of_headers);
}

TEST(FormatPage, the_state_word_has_its_bits) {
  std::map<std::string, Field> bits;
  std::map<std::string, std::uint64_t> states;
  const auto tables = tables_of_page();
  for (const Row& row : tables.at("State word")) {
    const bool number =
        !row.at(0).empty() && row.at(0).find_first_not_of("0123456789") == std::string::npos;
    if (!number) continue;
    if (row.size() == 4) bits[row[2]] = {row[2], std::stoull(row[0]), std::stoull(row[1])};
    if (row.size() == 3) states[row[1]] = std::stoull(row[0]);
  }
  EXPECT_EQ(bits["tag"].offset, 0U);
  EXPECT_EQ(bits["tag"].size, bits["back"].offset);
  EXPECT_EQ(bits["back"].offset + bits["back"].size, bits["version"].offset);
  EXPECT_EQ(bits["version"].offset + bits["version"].size, 64U);
  EXPECT_EQ(version_max >> (bits["version"].size - 1), 1U);
  EXPECT_EQ(back_max >> (bits["back"].size - 1), 1U);
  for (const std::uint64_t version : {std::uint64_t{0}, std::uint64_t{77}, version_max}) {
    const std::uint64_t word = encode_state({SlotState::complete, version, 5});
    EXPECT_EQ(word >> bits["version"].offset, version);
    EXPECT_EQ(word >> bits["back"].offset & back_max, 5U);
  }
  const std::map<std::string, std::uint64_t> expected{
      {"complete", static_cast<std::uint64_t>(SlotState::complete)},
      {"open", static_cast<std::uint64_t>(SlotState::open)},
      {"deleted", static_cast<std::uint64_t>(SlotState::deleted)},
      {"unused", static_cast<std::uint64_t>(SlotState::unused)}};
  EXPECT_EQ(states, expected);
}

}  // namespace
}  // namespace perdure
